"""The rules of GetTaxi one by one, on a city without Spark."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator

import h3
import pytest
from tests.pipelines.driving import some_events
from tests.pipelines.taxi import reference

from ottla.pipelines.taxi.city import City, Outcome
from ottla.pipelines.taxi.city_memory import recall, remember
from ottla.pipelines.taxi.fares import cost_cents
from ottla.pipelines.taxi.job import PIPELINE
from ottla.pipelines.taxi.places import REACH_M, RINGS, cells_in_reach, driver_cell, metres_between
from ottla.pipelines.taxi.reports import Report
from ottla.pipelines.taxi.rides import Cost, Match
from ottla.pipelines.taxi.surge import Price, surge_percent
from ottla.pipelines.taxi.traffic import CENTRES, Traffic

START = 1_700_000_040_000
SQUARE = (50.0875, 14.4213)
FOREVER = START + 10**9


def metres_east(metres: float) -> tuple[float, float]:
    return SQUARE[0], SQUARE[1] + metres / 71_333


class Story:
    """A city to which things happen, in seconds from the start."""

    def __init__(self) -> None:
        self.city = City()
        self._ids = 0

    def driver(self, second: float, name: str, metres: float, ride: str = "", kind: str = "position") -> None:
        self._report(second, kind, metres, name, "", ride)

    def user(self, second: float, ride: str, metres: float = 0) -> None:
        self._report(second, "request", metres, "", f"user of {ride}", ride)

    def _report(self, second: float, kind: str, metres: float, driver: str, user: str, ride: str) -> None:
        self._ids += 1
        time = START + round(second * 1000)
        self.city.report(Report(time, f"e{self._ids:05}", kind, *metres_east(metres), driver, user, ride))

    def told(self, until: float = 10**6) -> list[Outcome]:
        return list(self.city.advance(START + round(until * 1000)))

    def matches(self) -> list[tuple[str, str | None, float]]:
        return [
            (one.ride_id, one.driver_id, (one.decided_at - START) / 1000)
            for one in self.told()
            if isinstance(one, Match)
        ]


@pytest.fixture
def story() -> Story:
    return Story()


def test_the_nearest_free_driver_takes_the_ride_and_no_other_until_it_is_over(story: Story) -> None:
    story.driver(0, "near", 300)
    story.driver(0, "far", 900)
    story.user(1, "first")
    story.user(2, "second")
    story.user(3, "third")
    story.driver(4, "near", 0, "first", "pickup")
    story.driver(60, "near", 500, "first", "dropoff")
    assert story.matches() == [("first", "near", 1), ("second", "far", 2), ("third", "near", 60)]


def test_of_drivers_at_the_same_distance_the_first_by_name_is_chosen(story: Story) -> None:
    for name in ("c", "a", "b"):
        story.driver(0, name, 400)
    story.user(1, "ride")
    assert story.matches() == [("ride", "a", 1)]


def test_reports_of_the_same_time_are_handled_in_the_order_of_their_ids(story: Story) -> None:
    story.driver(5, "before", 1000)
    story.user(5, "ride")
    story.driver(5, "after", 10)
    assert story.matches() == [("ride", "before", 5)]


def test_a_driver_in_another_cell_is_found_and_one_out_of_reach_is_not(story: Story) -> None:
    assert driver_cell(*metres_east(0)) != driver_cell(*metres_east(1990))
    story.driver(0, "too far", 2010)
    story.user(1, "one")
    story.driver(2, "across the border", 1990)
    assert story.matches() == [("one", "across the border", 2)]


@pytest.mark.parametrize("centre", CENTRES.values(), ids=CENTRES)
def test_the_cells_that_are_searched_hold_every_place_in_reach(centre: tuple[float, float]) -> None:
    dice = random.Random(f"{centre}")
    for _ in range(300):
        here = (centre[0] + dice.uniform(-0.2, 0.2), centre[1] + dice.uniform(-0.2, 0.2))
        there = (here[0] + dice.uniform(-0.03, 0.03), here[1] + dice.uniform(-0.03, 0.03))
        if metres_between(here, there) <= REACH_M:
            assert driver_cell(*there) in cells_in_reach(driver_cell(*here))
    assert len(cells_in_reach(driver_cell(*centre))) == 1 + 3 * RINGS * (RINGS + 1)


def test_who_was_lost_sight_of_or_is_on_a_ride_of_somebody_else_is_not_free(story: Story) -> None:
    story.driver(0, "silent", 10)
    story.driver(61, "on a ride from another city", 20, ride="elsewhere")
    story.driver(61, "free", 1500)
    story.user(61, "ride")
    assert story.matches() == [("ride", "free", 61)]


def test_who_asked_first_is_served_first_and_nobody_waits_for_ever(story: Story) -> None:
    story.user(0, "first")
    story.user(1, "second")
    story.user(2, "third")
    story.driver(50, "one", 100)
    story.driver(121, "two", 100)
    assert story.matches() == [("first", "one", 50), ("second", "two", 121), ("third", None, 122)]


def test_a_match_that_is_not_taken_and_one_whose_end_was_lost_free_the_driver(story: Story) -> None:
    story.driver(0, "one", 100)
    story.user(1, "not taken")
    story.driver(20, "one", 100)
    story.user(21, "waits")
    story.driver(32, "one", 100)
    story.driver(33, "one", 0, "waits", "pickup")
    story.driver(63, "one", 600, "waits")
    story.driver(70, "one", 700)
    story.user(71, "next")
    told = story.told()
    assert [(one.ride_id, one.driver_id) for one in told if isinstance(one, Match)] == [
        ("not taken", "one"),
        ("waits", "one"),
        ("next", "one"),
    ]
    assert [(one.ride_id, one.distance_m, one.duration_s) for one in told if isinstance(one, Cost)] == [
        ("waits", 600, 30)
    ]


def test_a_ride_without_an_end_is_given_up(story: Story) -> None:
    story.driver(0, "one", 100)
    story.user(1, "lost")
    story.driver(10_800, "one", 100, "lost")
    story.user(10_802, "next")
    assert story.matches() == [("lost", "one", 1), ("next", "one", 10_802)]


def test_a_ride_costs_its_way_its_time_and_the_price_that_held_when_it_was_asked_for(story: Story) -> None:
    story.driver(0, "one", 100)
    story.user(1, "a")
    story.user(2, "b")
    story.user(3, "c")
    story.driver(70, "two", 0)
    story.user(75, "dear")
    story.driver(80, "two", 0, "b", "pickup")
    story.driver(100, "two", 1000, "b")
    story.driver(125, "two", 500, "b", "dropoff")
    story.driver(130, "two", 0, "dear", "pickup")
    story.driver(170, "two", 0, "dear", "dropoff")
    costs = {one.ride_id: one for one in story.told() if isinstance(one, Cost)}
    assert (costs["b"].distance_m, costs["b"].duration_s, costs["b"].surge_percent) == (1500, 45, 100)
    assert costs["b"].cost_cents == 453  # 250 + 120 * 1.5 + 30 * 0.75 = 452.5
    assert (costs["dear"].surge_percent, costs["dear"].cost_cents) == (300, 810)


def test_prices_follow_demand_and_supply_within_their_limits() -> None:
    assert [surge_percent(*one) for one in ((0, 0), (1, 0), (2, 0), (9, 0), (1, 9), (4, 3), (5, 2), (8, 2))] == [
        100,
        100,
        200,
        300,
        100,
        133,
        250,
        300,
    ]
    assert [cost_cents(*one) for one in ((0, 0, 100), (1000, 60, 100), (1000, 60, 150))] == [250, 400, 600]


def test_a_raised_price_returns_to_the_normal_one_when_nobody_is_there(story: Story) -> None:
    for number in range(2):
        story.user(number, f"ride {number}")
    cell = h3.latlng_to_cell(*SQUARE, 7)
    prices = [one for one in story.told() if isinstance(one, Price)]
    assert prices == [
        Price(cell, START + 60_000, demand=2, supply=0, percent=200),
        Price(cell, START + 120_000, demand=0, supply=0, percent=100),
    ]


def test_a_city_tells_when_it_has_to_be_asked_again(story: Story) -> None:
    """Asked whenever something is due, and only then, it tells the same as when it is asked once."""
    at_once = Story()
    for one in (story, at_once):
        one.user(0.1, "waits in vain")
        one.driver(190, "far", 3000)
        one.user(200, "served", 3000)
    told = []
    while (due := story.city.next_due()) is not None and due < FOREVER:
        told += list(story.city.advance(due + 1))
    assert told == at_once.told()
    assert [one.driver_id for one in told if isinstance(one, Match)] == [None, "far"]


def _reports(seed: int) -> Iterator[Report]:
    for city, report in Traffic(seed, drivers=8).reports(START):
        if report.event_time > START + 300_000:
            return
        if city == "prague":
            yield report


@pytest.mark.parametrize("seed", range(4))
def test_outcomes_do_not_depend_on_batches_order_or_copies(seed: int) -> None:
    reports = list(_reports(seed))
    whole = City()
    for report in reports:
        whole.report(report)
    expected = list(whole.advance(START + 280_000))

    dice = random.Random(seed)
    arriving = sorted(reports + reports[::7], key=lambda one: one.event_time + dice.randrange(10_000))
    told: list[Outcome] = []
    memory, newest = remember(City()), 0
    while arriving:
        size = dice.randrange(1, 120)
        batch, arriving = arriving[:size], arriving[size:]
        city, watermark = recall(memory), max(0, newest - 20_000)
        for report in batch:
            if report.event_time > watermark:
                city.report(report)
        told += city.advance(watermark)
        memory, newest = remember(city), max(newest, *(report.event_time for report in batch))
    told += recall(memory).advance(START + 280_000)
    assert told == expected
    assert {type(one) for one in told} == {Match, Cost, Price}


@pytest.mark.parametrize("seed", range(5))
def test_cities_tell_what_a_plain_computation_does(seed: int) -> None:
    """For many seeds, without Spark, and through disorder in which requests, pick-ups and drop-offs are lost."""
    events = some_events(PIPELINE, 3000, seed=seed, rate=6.0)
    reports = [fields for _, fields in reference.judged_reports(events).once_each()]
    expected = reference.answers(reports)
    watermark = max(report["event_time"] for report in reports) - 2 * reference.LATENESS_MS
    cities: dict[str, City] = {}
    for report in reports:
        names = (report.get(name, "") for name in ("driver_id", "user_id", "ride_id"))
        told = (report[name] for name in ("event_time", "event_id", "kind", "lat", "lon"))
        cities.setdefault(report["city"], City()).report(Report(*told, *names))
    outcomes = [(name, outcome) for name, city in cities.items() for outcome in city.advance(watermark)]
    for kind, rows in ((Match, expected.matches), (Price, expected.surge), (Cost, expected.costs)):
        found = [{"city": name, **outcome._asdict()} for name, outcome in outcomes if isinstance(outcome, kind)]
        assert reference.in_order(found) == reference.in_order(rows)


def test_a_state_with_more_than_plain_values_is_refused() -> None:
    with pytest.raises(pickle.UnpicklingError, match="system"):
        recall(b"cos\nsystem\n(S'true'\ntR.")
