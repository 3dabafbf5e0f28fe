"""What one sees of running pipelines, on terminals of two sizes and without one."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console
from tests.unit.cli.sample_answers import shown

from ottla.cli.pipeline_answers import Answer
from ottla.cli.pipeline_layout import NO_ANSWER, Shown, chosen_sentences, drawn
from ottla.cli.pipeline_screen import Lines
from ottla.cli.pipeline_sentences import sentence
from ottla.cli.pipeline_states import states
from ottla.pipelines.frame.pipeline import View
from ottla.pipelines.frame.progress import Progress

SAID = {
    "campaign": "autumn-banner: B sells better, B by +8.8 points (+2.2 to +15.6)",
    "gettaxi": "brno, cell 871e06943ffffff: 120 % of the price, demand 3, supply 1",
    "ingestion": "the lake has 1,200 records of 2 topics in 3 files (3.0 KiB)",
    "movieflix": "user-0223 goes on at 45:39 of show-02",
    "mybank": "acc-36: 2,687.54 is above its limit of 420.00",
    "mysocialmedia": "trending since",
}


def lines_of(pipelines: Sequence[Shown], width: int, height: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, highlight=False)
    console.print(drawn("Ottla  31 s", pipelines, width, height))
    return out.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (150, 50), (240, 60)])
def test_every_pipeline_has_its_state_and_an_answer_on_the_screen(width: int, height: int) -> None:
    lines = lines_of(shown(), width, height)
    assert len(lines) < height
    assert all(len(line) <= width for line in lines)
    for one in shown():
        name = one.state.pipeline
        (state,) = (line for line in lines if line.startswith(f"{name} "))
        assert all(figure in state for figure in ("running", "11,127", "1,234,567", "13 min", "12 s"))
        titles = [answer.title for answer in one.answers]
        text = "\n".join(lines)
        assert SAID[name][:70] in text or any(title in text for title in titles)


def test_a_small_screen_says_answers_as_sentences() -> None:
    lines = lines_of(shown(), 80, 24)
    for name, said in SAID.items():
        begins = next(number for number, line in enumerate(lines) if line.startswith(f"{name} "))
        assert said[:70] in lines[begins + 1]


def test_a_large_screen_has_tables_with_rows() -> None:
    lines = lines_of(shown(), 150, 50)
    text = "\n".join(lines)
    for one in shown():
        for answer in one.answers:
            assert answer.title in text
    assert text.count("brno-driver-25") >= 3
    # Its columns do not fit; what they say does.
    assert SAID["campaign"][:60] in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (150, 50), (20, 5)])
def test_before_there_are_answers_the_screen_says_so(width: int, height: int) -> None:
    empty = [
        replace(one, answers=[replace(answer, rows=(), sentences=()) for answer in one.answers]) for one in shown()
    ]
    lines = lines_of(empty, width, height)
    assert all(len(line) <= width for line in lines)
    assert any(NO_ANSWER in line for line in lines)


def test_where_there_is_room_for_a_few_sentences_each_answer_has_one_first() -> None:
    first, second = (Answer(name, (), (), (f"{name}1", f"{name}2")) for name in "ab")
    assert chosen_sentences([first, second], 1) == ["a1"]
    assert chosen_sentences([first, second], 2) == ["a1", "b1"]
    assert chosen_sentences([first, second], 3) == ["a1", "a2", "b1"]
    assert chosen_sentences([], 3) == [NO_ANSWER]


def test_rows_of_an_unknown_form_are_told_field_by_field() -> None:
    view = View("Surge", "gettaxi.surge", ("city", "since"), sort_by="city")
    assert sentence(view, {"city": "brno"}) == "city brno, since -"


def test_the_worst_state_of_its_queries_is_that_of_the_pipeline() -> None:
    found = [
        Progress("campaign", "a", "running", rows_per_second=3.0, lag=4, behind_ms=900, delay_ms=100),
        Progress("campaign", "b", "starting", rows_per_second=2.0, lag=5, behind_ms=70),
        Progress("mybank", "a", "starting"),
    ]
    campaign, mybank, taxi = states(["campaign", "mybank", "gettaxi"], found)
    assert (campaign.state, campaign.rows_per_second, campaign.lag) == ("starting", 5.0, 9)
    assert (campaign.behind_ms, campaign.delay_ms) == (900, 100)
    assert (mybank.state, mybank.lag, taxi.state) == ("starting", None, "waiting")


def test_without_a_terminal_a_line_comes_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    lines = Lines(lambda: now)
    found = [Progress("campaign", "a", "running", rows_per_second=17.2, behind_ms=2_400, delay_ms=3_100)]
    for seconds in range(31):
        now = 100.0 + seconds
        lines.show(found if seconds >= 5 else [], ["campaign", "mybank"], {"campaign": 40 * seconds})
    assert capsys.readouterr().out.splitlines() == [
        "0 s: 0 events sent; Spark is starting",
        "10 s: 400 events sent; campaign running, 17 rows/s, behind 2.4 s, answers after 3.1 s; mybank waiting",
        "20 s: 800 events sent; campaign running, 17 rows/s, behind 2.4 s, answers after 3.1 s; mybank waiting",
        "30 s: 1,200 events sent; campaign running, 17 rows/s, behind 2.4 s, answers after 3.1 s; mybank waiting",
    ]
