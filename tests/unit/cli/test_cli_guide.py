"""docs/CLI.md: every example is run, in order, and shows what a reader would see."""

import re
import textwrap
from pathlib import Path

import pytest
from tests.peers.paths import REPOSITORY
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.console import examples, matches, run

from ottla.client.config import AdminConfig, resolve
from ottla.runtime.properties import parse_properties
from ottla.testing import TestBroker

TEXT = (REPOSITORY / "docs" / "CLI.md").read_text(encoding="utf-8")


def test_the_guide_shows_what_a_reader_would_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = examples(TEXT)
    assert len(found) > 25
    with TestBroker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        ottla = CommandLine(broker.bootstrap_servers)
        for example in found:
            seen = run(example, ottla)
            assert matches(example.shown, seen), (example.command, example.shown, seen)


def test_the_settings_that_are_shown_exist() -> None:
    """Those of the secured cluster; the file with the authority does not, here."""
    (block,) = re.findall(r"(?:^    (?:security|sasl|ssl)\..*\n)+", TEXT, re.M)
    settings = parse_properties(textwrap.dedent(block))
    assert len(settings) == 5
    config = resolve(AdminConfig, "localhost:9092", settings)
    assert (config.security_protocol, config.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert link.startswith("https://") or (REPOSITORY / "docs" / link).exists()
