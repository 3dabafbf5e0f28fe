"""The text format: names, labels that need care, histograms."""

import pytest
from tests.unit.broker.exposition import Exposition

from ottla.broker.metrics import FAMILIES
from ottla.broker.metrics_text import COUNTER, GAUGE, HISTOGRAM, Family, Histogram

SIZE = Family("size", GAUGE, "How large\nit \\ is.", ("topic", "partition"))
SEEN = Family("seen_total", COUNTER, "Seen.", ("topic",))
TOOK = Family("took", HISTOGRAM, "Time.", ("request",))


def test_a_family_and_its_series() -> None:
    text = SIZE.head + SIZE.line(12, "orders", 0) + SIZE.line(0.5, "orders", 1)
    assert text == (
        "# HELP size How large\\nit \\\\ is.\n"
        "# TYPE size gauge\n"
        'size{topic="orders",partition="0"} 12\n'
        'size{topic="orders",partition="1"} 0.5\n'
    )
    assert Exposition(text).value("size", topic="orders", partition="1") == 0.5


def test_the_sum_over_all_has_no_labels() -> None:
    assert SEEN.line(3) == "seen_total 3\n"


def test_labels_must_all_be_given() -> None:
    with pytest.raises(ValueError, match="zip"):
        SIZE.line(1, "orders")


@pytest.mark.parametrize("topic", ['a"b', "a\\", "a\nb", '\\"', "a,b={}", "ä"])
def test_any_label_comes_back_as_it_was(topic: str) -> None:
    assert Exposition(SEEN.head + SEEN.line(7, topic)).value("seen_total", topic=topic) == 7


def test_large_counts_are_exact() -> None:
    assert SEEN.line(2**63 + 1) == "seen_total 9223372036854775809\n"


def test_a_histogram_counts_each_value_below_all_larger_bounds() -> None:
    times = Histogram((1.0, 10.0))
    for value in (0.5, 1.0, 1.5, 10.5, 1000.0):
        times.observe(value)
    assert "".join(times.lines(TOOK, "Fetch")) == (
        'took_bucket{request="Fetch",le="1.0"} 2\n'
        'took_bucket{request="Fetch",le="10.0"} 3\n'
        'took_bucket{request="Fetch",le="+Inf"} 5\n'
        'took_sum{request="Fetch"} 1013.5\n'
        'took_count{request="Fetch"} 5\n'
    )
    assert Exposition(TOOK.head + "".join(times.lines(TOOK, "Fetch"))).value("took_count", request="Fetch") == 5


def test_names_are_different_and_help_is_a_sentence() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert family.help.endswith("."), family.name
