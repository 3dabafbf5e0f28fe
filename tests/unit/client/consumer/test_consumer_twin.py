"""The choice between the twins of the consumer's records, and that they have the same face."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

from ottla.client.consumer import _native, _pure, _twin

ROOT = Path(__file__).resolve().parents[4]


def test_the_extension_is_built_and_chosen() -> None:
    assert _twin.IS_NATIVE
    assert _twin.Chunk is _native.Chunk


def test_the_pure_twin_can_be_asked_for() -> None:
    code = "from ottla.client.consumer import _twin, Record; print(_twin.IS_NATIVE, Record.__module__)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OTTLA_PURE": "1"},
    )
    assert done.stdout.split() == ["False", "ottla.client.consumer._pure"], done.stderr


def test_the_twins_have_the_same_names_and_parameters() -> None:
    for name in _pure.__all__:
        pure, native = getattr(_pure, name), getattr(_native, name)
        for method, function in inspect.getmembers(pure, inspect.isfunction):
            if not method.startswith("_") and method != "following":
                assert list(inspect.signature(function).parameters) == list(
                    inspect.signature(getattr(native, method)).parameters
                ), f"{name}.{method}"
        fields = {field for field, _ in inspect.getmembers(pure, lambda member: isinstance(member, property))}
        assert fields <= set(dir(native)), name
