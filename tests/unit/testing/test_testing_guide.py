"""Every example of docs/TESTING.md is run as it stands, each as a file of tests of its own."""

import re

import pytest
from tests.peers.paths import REPOSITORY
from tests.unit.testing.guide import QUICK_EXAMPLES, SLOW_EXAMPLES, TEXT, run_example

from ottla.testing import TestBroker
from ottla.testing.faults import Faults


def test_the_guide_has_its_examples() -> None:
    assert len(QUICK_EXAMPLES) == 6
    assert len(SLOW_EXAMPLES) == 1
    assert len(re.findall(r"^```python$", TEXT, re.M)) == 7


@pytest.mark.parametrize("example", QUICK_EXAMPLES, ids=lambda text: str(re.findall(r"def (test_\w+)", text)[0]))
def test_an_example_works(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    run_example(pytester, monkeypatch, example)


def test_calls_that_are_named_exist() -> None:
    named = set(re.findall(r"`(?:broker\.)?(?:clock\.)?(\w+)\(", TEXT))
    assert {"error", "delay", "disconnect", "kill", "restart", "full_disk", "fsync_fails"} <= named
    for name in named - {"advance"}:
        assert hasattr(TestBroker, name) or hasattr(Faults, name), name


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(link: str) -> None:
    assert (REPOSITORY / "docs" / link).exists()
