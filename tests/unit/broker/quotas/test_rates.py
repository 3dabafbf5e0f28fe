"""Rates and buckets at moments where the numbers can be worked out by hand; Kafka's own are in tests/compat/quotas."""

import math

import pytest

from ottla.broker.quotas.rates import INT32_MAX, SampledSum, TokenBucket, Windows, rounded_ms

START_MS = 50_000
WINDOWS = Windows(samples=11, window_ms=1000)


def test_a_first_burst_may_use_the_windows_that_are_still_empty() -> None:
    rate = SampledSum(WINDOWS)
    rate.record(1000, START_MS)
    assert rate.rate(START_MS) == 100.0
    assert rate.wait_ms(100.0, START_MS) == 0
    rate.record(1, START_MS)
    assert rate.wait_ms(100.0, START_MS) == 10


def test_the_wait_brings_the_rate_back_to_the_limit() -> None:
    rate = SampledSum(WINDOWS)
    rate.record(3000, START_MS)
    wait_ms = rate.wait_ms(100.0, START_MS)
    assert wait_ms == 20_000
    assert rate.wait_ms(100.0, START_MS + wait_ms) == 0


def test_a_limit_of_nothing_is_waited_for_as_long_as_can_be() -> None:
    rate = SampledSum(WINDOWS)
    assert rate.wait_ms(0.0, START_MS) == 0
    rate.record(1, START_MS)
    assert rate.wait_ms(0.0, START_MS) == INT32_MAX


def test_what_is_older_than_all_windows_is_forgotten() -> None:
    rate = SampledSum(WINDOWS)
    rate.record(5000, START_MS)
    assert rate.rate(START_MS + 10_999) > 0
    assert rate.rate(START_MS + 11_000) == 0


def test_what_is_taken_back_leaves_no_trace() -> None:
    rate = SampledSum(WINDOWS)
    rate.record(5000, START_MS)
    rate.record(-5000, START_MS)
    assert rate.wait_ms(1.0, START_MS) == 0


def test_the_memory_of_a_rate_does_not_grow() -> None:
    rate = SampledSum(WINDOWS)
    for second in range(1000):
        rate.record(10, START_MS + second * 1000)
    assert len(rate._samples) == WINDOWS.samples + 1
    assert rate.rate(START_MS + 999_000) == pytest.approx(10, rel=0.1)


def test_an_average_is_over_values_and_not_over_time() -> None:
    average = SampledSum(WINDOWS)
    assert math.isnan(average.average(START_MS))
    average.record(10, START_MS)
    average.record(30, START_MS + 5000)
    assert average.average(START_MS + 5000) == 20


def test_a_new_bucket_is_full_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(WINDOWS)
    assert bucket.tokens(2.0, START_MS) == 22.0
    bucket.take(32, 2.0, START_MS)
    assert bucket.wait_ms(2.0, START_MS) == 5000
    assert bucket.wait_ms(2.0, START_MS + 4999) == 1
    assert bucket.wait_ms(2.0, START_MS + 5000) == 0
    assert bucket.tokens(2.0, START_MS + 1_000_000) == 22.0


@pytest.mark.parametrize(
    ("milliseconds", "rounded"),
    [(0.49, 0), (0.5, 1), (2.5, 3), (math.nan, 0), (math.inf, INT32_MAX), (1e12, INT32_MAX), (-0.2, 0)],
)
def test_rounding(milliseconds: float, rounded: int) -> None:
    assert rounded_ms(milliseconds) == rounded
