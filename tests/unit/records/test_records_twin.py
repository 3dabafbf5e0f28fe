"""The choice between the twins, and that it makes no difference but speed."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

from tests.unit.records.both_ways import digest

from ottla import records
from ottla.records import _native, _pure

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("pyarrow", "lz4", "zstandard", "cramjam", "numpy")

# What a process sees where the extension was never built.
WITHOUT_EXTENSION = """
import sys, warnings
sys.modules["ottla.records._native"] = None
warnings.simplefilter("error")
from ottla import records
assert not records.IS_NATIVE
"""


def run(code: list[str], **environment: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-W", "error", *code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_extension_is_built_and_chosen() -> None:
    assert records.IS_NATIVE
    assert records.BatchHeader is _native.BatchHeader
    assert records.inspect_batches is _native.inspect_batches


def test_the_pure_twin_can_be_asked_for_and_gives_the_same() -> None:
    program = str(Path(__file__).with_name("both_ways.py"))
    assert run([program], OTTLA_PURE="1") == f"False {digest()}"


def test_a_missing_extension_is_said_once_and_only_when_it_matters() -> None:
    told = """
buffer = b""
for call in (lambda: records.inspect_batches(buffer), lambda: records.build_batch([])):
    try:
        call()
        print("silent")
    except records.PureFallbackWarning as warning:
        print("told", "C compiler" in str(warning))
"""
    assert run(["-c", WITHOUT_EXTENSION + told]).splitlines() == ["told True", "silent"]


def test_the_builder_says_it_too() -> None:
    told = """
try:
    records.BatchBuilder()
except records.PureFallbackWarning:
    print("told")
"""
    assert run(["-c", WITHOUT_EXTENSION + told]) == "told"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, ottla.records; print([name for name in {HEAVY} if name in sys.modules])"
    assert run(["-c", code]) == "[]"


def test_the_twins_have_the_same_names_and_parameters() -> None:
    for name in _pure.__all__:
        pure, native = getattr(_pure, name), getattr(_native, name)
        if inspect.isclass(pure):
            for method, function in inspect.getmembers(pure, inspect.isfunction):
                if not method.startswith("_"):
                    assert list(inspect.signature(function).parameters) == list(
                        inspect.signature(getattr(native, method)).parameters
                    ), f"{name}.{method}"
        else:
            assert list(inspect.signature(pure).parameters) == list(inspect.signature(native).parameters), name
