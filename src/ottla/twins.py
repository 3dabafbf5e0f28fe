"""Twins: the same code compiled, and plain for machines where nothing could be compiled. Which one is there is decided
here, in a module that imports nothing of ours: each package with twins asks."""

import importlib
import os
from types import ModuleType


def is_plain_wanted() -> bool:
    return os.environ.get("OTTLA_PURE") == "1"


def native_of(package: str) -> ModuleType | None:
    """The compiled twin of a package; None where it was not built, or `OTTLA_PURE=1` asks for the plain one."""
    if is_plain_wanted():
        return None
    try:
        return importlib.import_module(f"{package}._native")
    except ImportError:
        return None
