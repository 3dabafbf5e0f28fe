"""The compiled twin and the plain one put the same records into the same batches."""

from collections import deque
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.examples import examples

from ottla.client.errors import OttlaError, WrongType
from ottla.client.producer import _pure
from ottla.client.producer._twin import IS_NATIVE, twin
from ottla.records import binary_column

TWINS = [twin, _pure] if IS_NATIVE else [_pure]

timestamps = st.integers(-(2**62), 2**62) | st.integers(0, 5)
maybe_bytes = st.none() | st.binary(max_size=200)
headers = st.none() | st.lists(st.tuples(st.text(max_size=5), maybe_bytes), max_size=3)
keys = st.none() | st.binary(max_size=9)


class _Clock:
    def __init__(self) -> None:
        self.now = 1000

    def now_ms(self) -> int:
        self.now += 1
        return self.now

    def monotonic(self) -> float:
        return float(self.now)


class _Stage:
    """An appender of one of the twins, with a topic of three partitions, and what it did."""

    def __init__(self, module: ModuleType, batch_bytes: int, buffer_bytes: int = 10_000) -> None:
        self.module = module
        self.wakes = 0
        self.appender = module.Appender(buffer_bytes, batch_bytes, 5000)
        self.appender.clock = _Clock()
        self.appender.make_batch = lambda queue: module.RecordBuffer()
        self.appender.choose = self._choose
        self.appender.wake = self._wake
        self.appender.full = self._full
        self.appender.unknown = lambda *arguments: arguments
        self.queues = [module.PartitionCore("t", number) for number in range(3)]
        for queue in self.queues:
            queue.closed = deque()
        self.topic = module.TopicCore("t", self.queues)
        self.appender.set_topic(self.topic)

    def _choose(self, topic: Any) -> None:
        topic.sticky = (self.appender.appended_records + 1) % 3
        topic.sticky_bytes = 0

    def _wake(self) -> None:
        self.wakes += 1
        self.appender.is_waking = False

    def _full(self, size_bytes: int) -> None:
        raise OttlaError(f"no room for {size_bytes}")

    def append(self, *arguments: Any) -> Any:
        try:
            delivery = self.appender.append("t", *arguments)
        except OttlaError as error:
            return str(error)
        if isinstance(delivery, tuple):
            return delivery
        return delivery.index, delivery.timestamp

    def state(self) -> Any:
        batches = [
            (
                queue.number,
                [
                    (bytes(batch.view()), batch.record_count, batch.base_timestamp, batch.max_timestamp)
                    for batch in all_of
                ],
                queue.open is None,
            )
            for queue in self.queues
            for all_of in [[*queue.closed, *([queue.open] if queue.open is not None else [])]]
        ]
        appender = self.appender
        counts = (appender.available_bytes, appender.waiting, appender.appended_records, appender.appended_bytes)
        return batches, counts, self.wakes, self.topic.sticky, [queue.number for queue in appender.active]


@pytest.mark.skipif(not IS_NATIVE, reason="there is no compiled twin here")
@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(maybe_bytes, keys, headers, st.none() | st.integers(0, 10), st.none() | st.integers(0, 4)),
        max_size=30,
    ),
    st.integers(1, 600),
)
def test_the_same_records_make_the_same_batches(records: list[Any], batch_bytes: int) -> None:
    stages = [_Stage(module, batch_bytes) for module in TWINS]
    for record in records:
        told = [stage.append(*record) for stage in stages]
        assert told[0] == told[1]
        assert stages[0].state() == stages[1].state()
    for number in range(3):
        taken = [stage.appender.take(stage.queues[number]) for stage in stages]
        assert [one is None for one in taken] == [taken[0] is None] * 2
        if taken[0] is not None:
            for stage, batch in zip(stages, taken, strict=True):
                stage.appender.put_back(stage.queues[number], batch, 0)
                stage.appender.take(stage.queues[number])
                stage.appender.complete(batch, batch.payload_bytes)
        assert len({stage.appender.retire(stage.queues[number]) for stage in stages}) == 1
        assert stages[0].state() == stages[1].state()


@pytest.mark.skipif(not IS_NATIVE, reason="there is no compiled twin here")
@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes, headers), max_size=10))
def test_a_buffer_has_the_same_bytes(records: list[Any]) -> None:
    buffers = [module.RecordBuffer() for module in TWINS]
    for record in records:
        told = []
        for buffer in buffers:
            try:
                told.append(buffer.append(*record))
            except OttlaError as error:
                told.append(str(error))
        assert told[0] == told[1]
    native, pure = buffers
    assert bytes(native.view()) == bytes(pure.view())
    assert (native.record_count, native.base_timestamp, native.max_timestamp) == (
        pure.record_count,
        pure.base_timestamp,
        pure.max_timestamp,
    )


@pytest.mark.parametrize("module", TWINS)
def test_murmur2_is_kafkas(module: ModuleType) -> None:
    known = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    for key, value in known.items():
        assert module.murmur2(key) == value & 0xFFFFFFFF


@pytest.mark.skipif(not IS_NATIVE, reason="there is no compiled twin here")
@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(keys, max_size=40),
    st.integers(1, 5),
    st.sampled_from([pa.binary(), pa.large_binary()]),
    st.integers(0, 5),
)
def test_rows_find_the_same_partitions(values: list[bytes | None], count: int, kind: Any, skipped: int) -> None:
    array = pa.array([b"skipped"] * skipped + values, kind)[skipped:]
    column = binary_column(array, "key")
    assert column is not None
    told = [module.rows_by_partition(column, len(values), count) for module in TWINS]
    assert told[0] == told[1]
    grouped, sizes = told[0]
    rows = list(memoryview(grouped).cast("q"))
    assert sorted(rows) == list(range(len(values)))
    assert sum(sizes) == len(values)
    start = 0
    for partition, size in enumerate(sizes):
        part = rows[start : start + size]
        assert part == sorted(part)
        for row in part:
            key = values[row]
            expected = count if key is None else (_pure.murmur2(key) & 0x7FFFFFFF) % count
            assert partition == expected
        start += size


@pytest.mark.parametrize("module", TWINS)
def test_broken_key_columns_are_refused(module: ModuleType) -> None:
    column = binary_column(pa.array([b"abc", b"def"]), "key")
    assert column is not None
    with pytest.raises(OttlaError, match="smaller"):
        module.rows_by_partition(column, 2_000_000, 3)
    with pytest.raises(OttlaError, match="row 1"):
        module.rows_by_partition(column._replace(data=b"abcd"), 2, 3)


@pytest.mark.parametrize("module", TWINS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("text",), "value_serializer"),
        ((b"v", 5), "key_serializer"),
        ((b"v", None, [("a", 5)]), "header: bytes expected"),
        ((b"v", None, [(b"a", b"b")]), "name that is a str"),
        ((b"v", None, [5]), "pairs of name and bytes"),
        ((b"v", None, None, None, -1), "0 or more"),
        ((bytes(6000), None, None, None, 0), r"max\.request\.size"),
    ],
)
def test_wrong_records_are_refused_with_what_to_do(module: ModuleType, arguments: Any, message: str) -> None:
    stage = _Stage(module, 1000)
    before = stage.state()
    with pytest.raises(OttlaError, match=message):
        stage.appender.append("t", *arguments)
    assert stage.state() == before


@pytest.mark.parametrize("module", TWINS)
def test_buffers_of_all_kinds_are_taken(module: ModuleType) -> None:
    stage = _Stage(module, 1000)
    for value in (b"abc", bytearray(b"abc"), memoryview(b"xabcx")[1:4]):
        stage.appender.append("t", value, value, {"name": value}, 7, 0)
    assert stage.queues[0].open.record_count == 3
    data = bytes(stage.queues[0].open.view())
    assert data.count(b"abc") == 9


@pytest.mark.parametrize("module", TWINS)
def test_memory_is_given_back_once(module: ModuleType) -> None:
    stage = _Stage(module, 1000)
    stage.appender.append("t", b"abc", None, None, 7, 0)
    batch = stage.appender.take(stage.queues[0])
    size_bytes = batch.payload_bytes
    assert stage.appender.available_bytes == 10_000 - size_bytes
    stage.appender.complete(batch, size_bytes)
    stage.appender.complete(batch, size_bytes)
    assert stage.appender.available_bytes == 10_000


@pytest.mark.parametrize("module", TWINS)
def test_memory_that_is_looked_at_stays_until_nobody_does(module: ModuleType) -> None:
    buffer = module.RecordBuffer()
    buffer.append(7, b"key", b"value" * 1000)
    expected = bytes(buffer.view())
    seen, also_seen = buffer.view(), buffer.view()
    with pytest.raises(BufferError):
        buffer.append(8, b"key", b"value")
    assert bytes(buffer.view()) == expected
    buffer.release()
    assert buffer.payload_bytes == 0
    seen.release()
    others = [module.RecordBuffer() for _ in range(8)]
    for other in others:
        other.append(7, b"other", b"other" * 1000)
    assert bytes(also_seen) == expected
    also_seen.release()
    buffer.append(9, b"key", b"again")
    assert bytes(buffer.view()).endswith(b"again\0")


@pytest.mark.parametrize("module", TWINS)
def test_a_timestamp_is_milliseconds_or_a_datetime(module: ModuleType) -> None:
    stage = _Stage(module, 1000)
    moment = datetime(2024, 5, 1, 0, 0, 0, 1999, tzinfo=UTC)
    given: Any
    for given in (moment, 1_714_521_600_001, np.int64(1_714_521_600_001)):
        assert stage.appender.append("t", b"v", None, None, given).timestamp == 1_714_521_600_001
    for given in (1_714_521_600.5, 5.0, "5"):
        with pytest.raises(WrongType, match="milliseconds since 1970 as an int, or a datetime"):
            stage.appender.append("t", b"v", None, None, given)
    with pytest.raises(WrongType, match="partition: a whole number"):
        stage.appender.append("t", b"v", None, None, None, 1.5)
