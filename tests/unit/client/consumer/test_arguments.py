"""What users may hand in, and how it is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ottla.client.consumer._twin import Record
from ottla.client.consumer.arguments import (
    milliseconds,
    offsets_to_commit,
    partition_of,
    partitions_of,
    places_of,
)
from ottla.client.consumer.settings import ResetPolicy
from ottla.client.consumer.values import OffsetSpec
from ottla.client.errors import ConfigError
from ottla.client.types import OffsetAndMetadata, TopicPartition

ORDERS = TopicPartition("orders", 0)


def test_partitions_are_pairs_or_their_own_type() -> None:
    assert partition_of(("orders", 0)) == partition_of(ORDERS) == ORDERS
    assert partitions_of([("orders", 0), ORDERS]) == [ORDERS]
    assert partitions_of(ORDERS) == [ORDERS]
    assert partitions_of(None) is None


@pytest.mark.parametrize(
    "wrong", ["orders", ("orders",), ("orders", "0"), ("", 0), ("orders", -1), (0, "orders"), None]
)
def test_anything_else_is_no_partition(wrong: object) -> None:
    with pytest.raises(ConfigError, match="a partition is"):
        partition_of(wrong)


def test_assign_takes_partitions_with_an_offset_or_without() -> None:
    assert places_of([("orders", 0, 42), ("orders", 1)]) == {ORDERS: 42, TopicPartition("orders", 1): None}
    with pytest.raises(ConfigError, match="an offset is"):
        places_of([("orders", 0, -1)])


def test_a_record_is_committed_by_the_offset_behind_it() -> None:
    record: Record[bytes, bytes] = Record("orders", 0, 41, leader_epoch=3)
    assert offsets_to_commit(record) == {ORDERS: OffsetAndMetadata(42, "", 3)}


def test_offsets_are_committed_as_they_are() -> None:
    given: dict[tuple[str, int], int | OffsetAndMetadata] = {
        ("orders", 0): 42,
        ("orders", 1): OffsetAndMetadata(7, "why"),
    }
    assert offsets_to_commit(given) == {
        ORDERS: OffsetAndMetadata(42),
        TopicPartition("orders", 1): OffsetAndMetadata(7, "why"),
    }


@pytest.mark.parametrize("wrong", [42, [("orders", 0)], {("orders", 0): -1}, {("orders", 0): "42"}, {"orders": 1}])
def test_other_things_cannot_be_committed(wrong: object) -> None:
    with pytest.raises(ConfigError):
        offsets_to_commit(wrong)  # type: ignore[arg-type]  # what a user without a type checker may do


def test_times_are_datetimes_or_milliseconds() -> None:
    assert milliseconds(datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)) == milliseconds(1500) == 1500
    for wrong in (-1, 1.5, True, "now"):
        with pytest.raises(ConfigError, match="a time is"):
            milliseconds(wrong)  # type: ignore[arg-type]  # what a user without a type checker may do


@pytest.mark.parametrize(
    ("name", "time_ms"),
    [
        ("earliest", OffsetSpec.EARLIEST),
        ("latest", OffsetSpec.LATEST),
        ("by_duration:PT1.5S", 1_000_000_000 - 1500),
        ("by_duration:P1DT2H3M", 1_000_000_000 - 93_780_000),
        ("by_duration:P20D", 0),
    ],
)
def test_a_reset_policy_stands_for_a_time(name: str, time_ms: int) -> None:
    assert ResetPolicy(name).time_ms(1_000_000_000) == time_ms
