"""Compiled modules of a checkout: which are used, and when new ones come into their places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from checkout.compiled import Checkout

_SETUP = """
HOT_MODULES = (
    "ottla.log.segment",
)
native = Extension("ottla.records._native", [])
"""
_SUFFIX = ".cpython-311.so"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout whose sources are of the second 100."""
    (tmp_path / "setup.py").write_text(_SETUP)
    for name in ("log/segment.py", "log/plain.py", "records/_native.pyx", "records/_native_batches.pxi"):
        _write(tmp_path / "src" / "ottla" / name, at=100)
    return tmp_path


def test_nothing_is_to_be_done_once_all_is_compiled(root: Path) -> None:
    assert not Checkout(root).is_complete()
    for name in ("log/segment", "records/_native"):
        _write(root / "src" / "ottla" / f"{name}{_SUFFIX}", at=200)
    assert Checkout(root).is_complete()
    _write(root / "src" / "ottla" / "records" / "_native_batches.pxi", at=300)
    assert not Checkout(root).is_complete()


def test_what_could_not_be_compiled_is_tried_again_when_something_has_changed(root: Path) -> None:
    (root / "build" / "next").mkdir(parents=True)
    (root / "build" / "next" / "tried").write_text("150.0")
    assert Checkout(root).is_complete()
    _write(root / "src" / "ottla" / "log" / "segment.py", at=160)
    assert not Checkout(root).is_complete()


def test_before_a_start_new_modules_come_into_place_and_old_ones_go(root: Path) -> None:
    source, following = root / "src" / "ottla", root / "build" / "next" / "ottla"
    _write(following / "log" / f"segment{_SUFFIX}", at=200)
    # Its source was changed after it was compiled, and what is in its place is older still.
    _write(following / "records" / f"_native{_SUFFIX}", at=90)
    _write(source / "records" / f"_native{_SUFFIX}", at=50)
    Checkout(root).place()
    assert sorted(path.name for path in source.rglob("*.so")) == [f"segment{_SUFFIX}"]
    assert not list(following.rglob("*.so"))


def _write(path: Path, at: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    os.utime(path, (at, at))
