"""The examples of docs/TESTING.md, and how one is run."""

import re

import pytest
from tests.peers.paths import REPOSITORY

# They load for longer than most examples run, which use neither.
OTHER_PLUGINS_OFF = "-p no:randomly -p no:hypothesispytest"

TEXT = (REPOSITORY / "docs" / "TESTING.md").read_text(encoding="utf-8")
SLOW_MARK = "<!-- slow: tests/compat -->\n"
SLOW_EXAMPLES: list[str] = re.findall(rf"^{SLOW_MARK}```python\n(.*?)^```", TEXT, re.M | re.S)
QUICK_EXAMPLES: list[str] = [
    example for example in re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S) if example not in SLOW_EXAMPLES
]


def run_example(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    """In a pytest of its own, with warnings that nobody expects as errors."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "src"))
    monkeypatch.setenv("PYTEST_ADDOPTS", OTHER_PLUGINS_OFF)
    pytester.makepyfile(example)
    result = pytester.runpytest_subprocess("-p", "ottla.testing.plugin", "--strict-markers")
    result.assert_outcomes(passed=len(re.findall(r"^def test_", example, re.M)))
