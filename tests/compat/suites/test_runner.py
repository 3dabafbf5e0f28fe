"""The parts of the runner that decide what is run and what is said about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from tests.compat.suites.left_out import LeftOut, read_left_out, reasons, words
from tests.compat.suites.page import render
from tests.compat.suites.runner import SUITES, Comparison
from tests.compat.suites.suite import Outcome, Result, Run, Suite, SuiteFailed, read_junit, run_with_repeat
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

NO_BROKER = cast(ServerProcess, None)
JUNIT = """<testsuites><testsuite>
<testcase classname="a.b" name="good" time="0.5"/>
<testcase classname="a.b" name="bad"><failure message="first line&#10;second">trace</failure></testcase>
<testcase classname="a.b" name="broken"/>
<testcase classname="a.b" name="broken"><error message="at the end"/></testcase>
<testcase classname="a.b" name="passed over"><skipped message="not here"/></testcase>
</testsuite></testsuites>"""


class ScriptedSuite(Suite):
    """Gives the outcomes of a script, one column for each run of a test."""

    name, version, language = "scripted", "1", "none"

    def __init__(self, script: dict[str, str]) -> None:
        self.script = script
        self.asked: list[list[str]] = []

    def broker_properties(self, port: int) -> dict[str, str]:
        return {}

    def names(self) -> list[str]:
        return list(self.script)

    def run(self, broker: ServerProcess, names: Sequence[str], directory: Path) -> tuple[dict[str, Outcome], str]:
        self.asked.append(list(names))
        results = {"p": Result.PASSED, "f": Result.FAILED, "s": Result.SKIPPED}
        columns = {name: self.script[name][len(self.asked) - 1] for name in names}
        return {name: Outcome(results[letter]) for name, letter in columns.items() if letter in results}, "printed "


def test_an_api_that_appears_ends_the_wait() -> None:
    names = ["x::one", "x::two[a]", "x::two[b]", "x::three"]
    entries = [LeftOut(("x::two",), (ApiKey.ELECT_LEADERS, ApiKey.JOIN_GROUP)), LeftOut(("x::three",), reason="TLS")]
    served = frozenset({int(ApiKey.ELECT_LEADERS)})
    two = "API not served: JoinGroup"
    assert reasons(names, entries, served) == {"x::two[a]": two, "x::two[b]": two, "x::three": "TLS"}
    assert reasons(names, entries, served | {int(ApiKey.JOIN_GROUP)}) == {"x::three": "TLS"}


def test_a_name_stands_for_itself_and_not_for_longer_ones() -> None:
    assert set(reasons(["t::a", "t::a_b"], [LeftOut(("t::a",), reason="why")], frozenset())) == {"t::a"}
    with pytest.raises(ValueError, match="no test t::gone"):
        reasons(["t::a"], [LeftOut(("t::gone",), reason="why")], frozenset())


def test_an_entry_has_apis_or_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text('[[left_out]]\ntests = ["a"]\napis = ["AddPartitionsToTxn", "EndTxn"]\n')
    assert read_left_out(path) == [LeftOut(("a",), (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN))]
    for text in ('[[left_out]]\ntests = ["a"]\n', '[[left_out]]\ntests = ["a"]\napis = ["EndTxn"]\nreason = "b"\n'):
        path.write_text(text)
        with pytest.raises(ValueError, match="either apis or a reason"):
            read_left_out(path)


@pytest.mark.parametrize("name", SUITES)
def test_the_list_of_each_suite_reads(name: str) -> None:
    for entry in SUITES[name]().left_out():
        assert [ApiKey[api.name] for api in entry.apis] == list(entry.apis)
        assert all(words(api)[0].isupper() for api in entry.apis)


def test_a_report_is_read(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(JUNIT)
    assert read_junit(tmp_path / "junit.xml") == {
        ("a.b", "good"): Outcome(Result.PASSED, "", 0.5),
        ("a.b", "bad"): Outcome(Result.FAILED, "first line"),
        ("a.b", "broken"): Outcome(Result.FAILED, "at the end"),
        ("a.b", "passed over"): Outcome(Result.SKIPPED, "not here"),
    }


def test_what_failed_is_repeated_once(tmp_path: Path) -> None:
    suite = ScriptedSuite({"good": "p", "shaky": "fp", "bad": "ff", "over": "s"})
    outcomes, output = run_with_repeat(suite, NO_BROKER, suite.names(), tmp_path)
    assert suite.asked == [["good", "shaky", "bad", "over"], ["shaky", "bad"]]
    assert {name: outcome.result for name, outcome in outcomes.items()} == {
        "good": Result.PASSED, "shaky": Result.PASSED, "bad": Result.FAILED, "over": Result.SKIPPED,
    }  # fmt: skip
    assert (outcomes["shaky"].note, output) == ("passed when it was repeated", "printed printed ")


def test_a_suite_that_is_silent_about_a_test_is_not_believed(tmp_path: Path) -> None:
    with pytest.raises(SuiteFailed, match="silent"):
        run_with_repeat(ScriptedSuite({"good": "p", "silent": "-"}), NO_BROKER, ["good", "silent"], tmp_path)


def test_the_page_names_what_is_worse_here() -> None:
    passed, failed, left_out = Outcome(Result.PASSED), Outcome(Result.FAILED), Outcome(Result.LEFT_OUT, "because")
    ottla = Run({"a": passed, "b": failed, "c": failed, "d": left_out}, 1.0)
    kafka = Run({"a": passed, "b": passed, "c": failed, "d": passed}, 1.0)
    comparison = Comparison(ScriptedSuite({}), ottla, kafka)
    assert comparison.worse() == ["b"]
    page = render([comparison], date(2026, 1, 2))
    assert "Last run: 2026-01-02." in page
    assert "| scripted 1 | none | 4 | 3 | 1 | 1 | 1 |" in page
    assert "| `d` | passed | left out: because |" in page
