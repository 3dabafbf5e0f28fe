"""What a run hands on: inputs to the attack, rows to the page."""

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.fuzz.attack import Counts
from tests.fuzz.campaign import Outcome
from tests.fuzz.corpus_files import FoundInputs, read_inputs
from tests.fuzz.guided_process import Report
from tests.fuzz.page import END_OF_RUNS, END_OF_TARGETS, add_results
from tests.fuzz.replays import Replays
from tests.peers.paths import REPOSITORY

GUIDED_ID, REAL_ID = b"g" * 16, b"r" * 16


def test_replays_name_the_topics_of_the_broker_they_are_sent_to(tmp_path: Path) -> None:
    FoundInputs(tmp_path, "broker").add(b"<" + GUIDED_ID + b">")
    replays = Replays(tmp_path, {"one": GUIDED_ID})
    dice = random.Random(1)
    assert replays.draw(dice, {"one": REAL_ID}) is None, "nothing is known before it was looked for"
    replays.refresh()
    drawn = [replays.draw(dice, {"one": REAL_ID}) for _ in range(200)]
    assert b"<" + REAL_ID + b">" in drawn
    assert None in drawn, "others have their turn"
    assert not any(data and GUIDED_ID in data for data in drawn)
    assert replays.replayed == sum(data is not None for data in drawn)


def test_news_are_told_once(tmp_path: Path) -> None:
    writer, reader = FoundInputs(tmp_path, "http"), FoundInputs(tmp_path, "http")
    assert reader.news() == []
    writer.add(b"one")
    writer.add(b"one")
    assert reader.news() == [b"one"]
    writer.add(b"two")
    assert reader.news() == [b"two"]
    assert reader.news() == []


def test_inputs_are_hex_digits_or_literals(tmp_path: Path) -> None:
    path = tmp_path / "some.hex"
    path.write_text("# a comment\n00ff\n\nb\"GET\\r\\n\"\nb'x'\nba5e\n")
    assert read_inputs(path) == [b"\x00\xff", b"GET\r\n", b"x", b"\xba\x5e"]


def test_rows_go_to_the_end_of_their_tables(tmp_path: Path) -> None:
    page = tmp_path / "FUZZ.md"
    page.write_text((REPOSITORY / "docs" / "FUZZ.md").read_text(encoding="utf-8"), encoding="utf-8")
    report = Report()
    state = {"executions": 1500, "edges": 70, "corpus": 9, "most_steps": 12, "findings": 0, "memory_bytes": 5 << 20}
    report.hear('{"event": "hello", "topic_ids": {"one": "00ff"}}')
    report.states["http"] = state
    outcome = Outcome(7, 60.0, Counts(10, 5, 2, 100), 1 << 20, 2 << 20, 300, (0.001, 0.002, 0.25), 4)
    for number in (1, 2):
        add_results(page, datetime(2030, 1, number, 12, tzinfo=UTC), outcome, report, problems=number - 1)
    lines = page.read_text(encoding="utf-8").splitlines()
    runs, targets = lines.index(END_OF_RUNS), lines.index(END_OF_TARGETS)
    assert lines[runs - 1] == lines[targets - 1] == "", "a comment right behind a table would be a row of it"
    assert lines[runs - 3].startswith("| 2030-01-01 12:00 | 7 | 60 | 1,500 | 9 | 10 | 4 | 2 | 1 to 2 MiB |")
    assert lines[runs - 3].endswith("| 300 | 2 / 250 | nothing found |")
    assert lines[runs - 2].endswith("| 1 findings |")
    assert lines[targets - 2] == "| 2030-01-02 12:00 | http | 1,500 | 70 | 9 | 12 | 0 |"
    assert lines[runs - 2].count("|") == lines[runs - 3].count("|") == _columns(lines, runs)


def _columns(lines: list[str], end: int) -> int:
    return next(line for line in reversed(lines[:end]) if line.startswith("|---")).count("|")


def test_words_that_are_no_json_are_kept_for_the_report() -> None:
    report = Report()
    report.hear("Traceback (most recent call last):")
    assert report.noise == ["Traceback (most recent call last):"]


def test_a_page_without_its_tables_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "FUZZ.md"
    page.write_text("# Fuzzing\n")
    with pytest.raises(ValueError, match="has no line"):
        add_results(page, datetime(2030, 1, 1, tzinfo=UTC), Outcome(1, 1.0), Report(), 0)
