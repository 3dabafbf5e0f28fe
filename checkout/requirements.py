"""What extras need, installed into this Python, with how far that is."""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

_OWN_EXTRA = re.compile(r"ottla\[([a-z0-9,]+)\]")
_DOWNLOADING = re.compile(r"(?:Downloading|Using cached) (\S+?)-\d\S* \(([\d.]+) (kB|MB)\)")
_LOOK_SECONDS = 2.0
_LAST_LINES = 5

Say = Callable[[str], None]


class InstallFailed(Exception):
    """pip could not; the text says why."""


def requirements_of(extras: Iterable[str], project: Path) -> list[str]:
    """All that these extras ask for, those within them too, without the project itself."""
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found: dict[str, None] = {}
    waiting = list(extras)
    while waiting:
        for one in declared[waiting.pop(0)]:
            own = _OWN_EXTRA.fullmatch(one)
            if own is not None:
                waiting += own[1].split(",")
            else:
                found[one] = None
    return list(found)


def install(requirements: Iterable[str], say: Say) -> None:
    """By pip, which is quick where all is there. What is compiled to byte code is so when it is first used: what the
    screen waits for is less than half of it."""
    with tempfile.TemporaryDirectory(prefix="ottla-install-") as scratch:
        pip = subprocess.Popen(
            [sys.executable, "-m", "pip", "install", "--no-compile", "--progress-bar", "off", *requirements],
            env={**os.environ, "TMPDIR": scratch, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert pip.stdout is not None
        watch = PipWatch(Path(scratch), Path(sysconfig.get_paths()["purelib"]))
        reading = threading.Thread(target=watch.read, args=(pip.stdout,))
        reading.start()
        while is_running(pip, _LOOK_SECONDS):
            say(watch.progress())
        reading.join()
        pip.stdout.close()
        if pip.returncode:
            raise InstallFailed(watch.last_words())


def is_running(process: "subprocess.Popen[str]", seconds: float) -> bool:
    """After so long, or as soon as it has ended."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


class PipWatch:
    """How far pip is: by what it prints, and by how much it has written to the disk."""

    def __init__(self, scratch: Path, packages: Path) -> None:
        self._scratch = scratch
        self._packages = packages
        self._before = 0
        self._lines: list[str] = []
        self._package, self._size_mb = "", 0.0

    def read(self, output: IO[str]) -> None:
        for line in output:
            self.note(line)

    def note(self, line: str) -> None:
        self._lines = [*self._lines[1 - _LAST_LINES :], line.strip()]
        found = _DOWNLOADING.search(line)
        if found is not None:
            self._package = found[1]
            self._size_mb = float(found[2]) / (1000 if found[3] == "kB" else 1)
            self._before = megabytes(self._scratch)
        elif line.startswith("Installing collected packages"):
            self._before = megabytes(self._packages)

    def progress(self) -> str:
        last = self._lines[-1] if self._lines else ""
        if last.startswith("Installing collected packages"):
            return f"unpacking, {megabytes(self._packages) - self._before} MB so far"
        if last.startswith("Building wheel"):
            return f"putting {self._package or 'packages'} together"
        if self._package and self._size_mb >= 1:
            done = min(megabytes(self._scratch) - self._before, int(self._size_mb))
            return f"fetching {self._package}, {done} of {self._size_mb:.0f} MB"
        return "looking for packages"

    def last_words(self) -> str:
        return next((line for line in reversed(self._lines) if line.startswith("ERROR")), " ".join(self._lines[-1:]))


def megabytes(folder: Path) -> int:
    """What is in it, and below it. Files come and go meanwhile."""
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(directory, name)).st_size
            except OSError:
                continue
    return total // 1_000_000
