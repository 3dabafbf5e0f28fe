"""Compiled modules of a checkout: which are out of date, and compiling them for the next start.

A process that runs never finds half of a module, and all processes of one run have the same ones: what is compiled
meanwhile is kept in `build/next`, and goes to its place before the next start.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from checkout.requirements import is_running

_NAMED = re.compile(r'"(ottla\.[a-z_.]+)"')
_SUFFIXES = (".pyx", ".pxi", ".h")
_LOOK_SECONDS = 2.0
_LEAST_PRIORITY = 19


class Checkout:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._source = root / "src"
        self._next = root / "build" / "next"
        self._tried = self._next / "tried"

    def place(self) -> None:
        """Before anything is imported: newly compiled modules go to their places, and what is older than its source
        goes away, since it would be used in its stead."""
        for path in self._next.rglob("*.so") if self._next.exists() else ():
            target = self._source / path.relative_to(self._next)
            if path.stat().st_mtime < self._changed(target):
                path.unlink()
            else:
                path.replace(target)
        for path in self._source.rglob("*.so"):
            if path.stat().st_mtime < self._changed(path):
                path.unlink()

    def is_complete(self) -> bool:
        """Whether all is compiled and up to date, or could not be when it was tried on the very same sources."""
        newest = 0.0
        is_all_there = True
        for name in self._names():
            target = self._source.joinpath(*name.split("."))
            changed = self._changed(target)
            there = [one.stat().st_mtime for one in target.parent.glob(f"{target.name}.*.so")]
            is_all_there &= any(when >= changed for when in there)
            newest = max(newest, changed)
        return is_all_there or (self._tried.exists() and float(self._tried.read_text() or 0) >= newest)

    def compile(self, say: Callable[[str], None]) -> bool:
        """With what others leave of the processor. Whether it could be done; `say` is told how far it is."""
        os.nice(_LEAST_PRIORITY)
        began = time.time()
        with tempfile.TemporaryDirectory(prefix="ottla-compile-") as wheels:
            pip = subprocess.Popen(
                [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, str(self._root)],
                env={**os.environ, "OTTLA_PURE": "0"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                text=True,
            )
            while is_running(pip, _LOOK_SECONDS):
                say(f"compiling for the next start, {self._progress(began)}")
            if pip.returncode == 0:
                for wheel in Path(wheels).glob("*.whl"):
                    self._keep(wheel, began)
        self._next.mkdir(parents=True, exist_ok=True)
        self._tried.write_text(str(began))
        return pip.returncode == 0

    def _keep(self, wheel: Path, began: float) -> None:
        """What was changed while it was compiled is newer than what came of it."""
        with zipfile.ZipFile(wheel) as packed:
            for name in packed.namelist():
                if name.endswith(".so"):
                    path = Path(packed.extract(name, self._next))
                    os.utime(path, (began, began))

    def _progress(self, began: float) -> str:
        """Modules become C first, then machine code."""
        total = len(list(self._names()))
        built = _newer(self._root.glob("build/lib*"), "*.so", began)
        if built:
            return f"{built} of {total} modules built"
        return f"{_newer(self._root.glob('build/cython'), '*.c', began)} of {total} modules translated"

    def _names(self) -> Iterator[str]:
        return iter(sorted(set(_NAMED.findall((self._root / "setup.py").read_text(encoding="utf-8")))))

    def _changed(self, module: Path) -> float:
        """When the sources of a module were, which is named with or without the suffix of what is compiled."""
        name = module.name.partition(".")[0]
        if name == "_native":
            sources = [one for one in module.parent.iterdir() if one.suffix in _SUFFIXES]
        else:
            sources = [module.with_name(f"{name}.py")]
        return max((one.stat().st_mtime for one in sources if one.exists()), default=0.0)


def _newer(folders: Iterable[Path], pattern: str, began: float) -> int:
    return sum(path.stat().st_mtime >= began for folder in folders for path in folder.rglob(pattern) if path.exists())
