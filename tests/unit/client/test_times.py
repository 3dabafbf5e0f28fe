"""Times become milliseconds exactly, whatever they come as."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.arguments import milliseconds
from ottla.client.errors import ConfigError, WrongType
from ottla.client.producer.arguments import stamp
from ottla.client.times import milliseconds_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def seoul() -> Iterator[None]:
    """Local time is nine hours ahead."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "KST-9"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@given(st.integers(-(10**13), 10**14))
def test_every_millisecond_is_exact(at_ms: int) -> None:
    moment = EPOCH + timedelta(milliseconds=at_ms)
    assert milliseconds_of(moment) == at_ms
    assert milliseconds_of(moment.astimezone(timezone(timedelta(hours=-5)))) == at_ms
    assert stamp(moment) == at_ms


@pytest.mark.usefixtures("seoul")
def test_a_datetime_without_a_zone_is_local_time() -> None:
    local: Any
    for local in (datetime(2024, 5, 1, 9, 0, 0, 1000), pd.Timestamp("2024-05-01T09:00:00.001")):
        assert stamp(local) == stamp(datetime(2024, 5, 1, 0, 0, 0, 1000, tzinfo=UTC)) == 1_714_521_600_001


def test_whole_numbers_of_other_libraries_are_taken() -> None:
    assert stamp(np.int64(5)) == 5
    assert stamp(pd.Timestamp("2024-05-01", tz="UTC")) == 1_714_521_600_000


@pytest.mark.parametrize("wrong", [time.time(), 5.0, np.float64(5), "2024-05-01", pd.NaT, np.datetime64("2024-05-01")])
def test_what_is_no_time_is_refused_as_a_type_error_of_the_client(wrong: Any) -> None:
    with pytest.raises(WrongType, match="milliseconds since 1970 as an int, or a datetime") as refused:
        stamp(wrong)
    assert isinstance(refused.value, TypeError)


def test_a_consumer_says_how_seconds_are_written() -> None:
    with pytest.raises(ConfigError, match=r"of seconds, write int\(seconds \* 1000\)"):
        milliseconds(1.7e9)  # type: ignore[arg-type]
    assert milliseconds(EPOCH + timedelta(milliseconds=1_714_521_600_001)) == 1_714_521_600_001
