"""Loads the broker's modules from their plain sources, with branches marked, whatever was compiled of them.

`prefer_sources` has to be called before the first import of `ottla`: what is loaded already stays as it is. Records
are handled by the pure twin in such a process, since the native one has no branches that could be seen; it can still
be imported by its name, to compare the two.
"""

import ast
import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.instrument import Coverage, Instrumenter, instrumented

SOURCE = Path(__file__).resolve().parents[2] / "src"
PACKAGE = "ottla"
# Written at run time, one for each message and version: the codecs are worth watching, constructors are not.
CODE_WRITER = "ottla.protocol.source"
# What stands in for the machine is no code of the broker.
LEFT_ALONE = "ottla.testing"


class _Loader(importlib.abc.Loader):
    def __init__(self, path: Path, name: str, coverage: Coverage) -> None:
        self._path = path
        self._name = name
        self._coverage = coverage

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        title = self._name.removeprefix(PACKAGE + ".")
        tree = instrumented(self._path.read_text(encoding="utf-8"), str(self._path), self._coverage, title)
        module.__dict__.update(self._coverage.namespace())
        if self._name == CODE_WRITER:
            module.__dict__.update(compile=self._compile, exec=self._exec)
        exec(compile(tree, str(self._path), "exec"), module.__dict__)

    def _compile(self, text: str, filename: str, mode: str) -> types.CodeType:
        assert mode == "exec", f"whole modules are written at run time, {mode} came"
        tree = ast.parse(text, filename)
        if "__init__" not in filename:
            Instrumenter(self._coverage, filename).visit(tree)
        code: types.CodeType = builtins.compile(tree, filename, mode)
        return code

    def _exec(self, code: types.CodeType, scope: dict[str, object]) -> None:
        scope.update(self._coverage.namespace())
        builtins.exec(code, scope)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != PACKAGE or fullname.startswith(LEFT_ALONE):
            return None
        plain = SOURCE / fullname.replace(".", "/")
        is_package = plain.is_dir()
        file = plain / "__init__.py" if is_package else plain.with_suffix(".py")
        if not file.exists():
            return None
        loader = _Loader(file, fullname, self._coverage)
        locations = [str(plain)] if is_package else None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=loader, submodule_search_locations=locations
        )


def prefer_sources(coverage: Coverage) -> None:
    loaded = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    if loaded:
        raise RuntimeError(f"too late: {', '.join(loaded[:3])} and others are loaded already")
    os.environ["OTTLA_PURE"] = "1"
    sys.meta_path.insert(0, _Finder(coverage))
