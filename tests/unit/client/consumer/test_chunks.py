"""Records that are handed out from what was fetched, and where the consumer stands meanwhile."""

from __future__ import annotations

import asyncio
import gc
import pickle
import weakref
from typing import Any

import pytest
from tests.unit.client.consumer.stored import batch, chunk, marker, taken

from ottla.client.consumer.values import ChunkMode, TimestampType
from ottla.client.errors import CorruptBatch, SerializationError, UndecodableRecord
from ottla.records import Codec, ControlType

CODECS = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)


@CODECS
def test_a_record_has_all_that_was_stored(twin: Any, codec: Codec) -> None:
    records = taken(chunk(batch([b"a", b"b", None, b""], 40, codec=codec), 40, twin=twin))
    assert [record.offset for record in records] == [40, 41, 42, 43]
    assert [record.key for record in records] == [None, b"k1", None, b"k3"]
    assert [record.value for record in records] == [b"a", b"b", None, b""]
    assert [record.timestamp for record in records] == [1000, 1001, 1002, 1003]
    assert [record.headers for record in records] == [
        (("n", b"0"), ("none", None)),
        (),
        (),
        (("n", b"3"), ("none", None)),
    ]
    assert {(record.topic, record.partition, record.leader_epoch) for record in records} == {("orders", 3, 7)}
    assert {record.timestamp_type for record in records} == {TimestampType.CREATE_TIME}


def test_log_append_time_is_told_apart(twin: Any) -> None:
    record = taken(chunk(batch([b"a"], log_append_time=555), twin=twin))[0]
    assert (record.timestamp, record.timestamp_type) == (555, TimestampType.LOG_APPEND_TIME)


def test_a_record_can_be_made_compared_hashed_shown_and_pickled(twin: Any) -> None:
    made = twin.Record("orders", 3, 0, 1000, TimestampType.CREATE_TIME, None, b"a", (("n", b"0"), ("none", None)), 7)
    read = taken(chunk(batch([b"a"]), twin=twin))[0]
    assert read == made
    assert hash(read) == hash(made)
    assert pickle.loads(pickle.dumps(read)) == made
    assert repr(read) == (
        "Record(topic='orders', partition=3, offset=0, timestamp=1000, key=None, value=b'a', "
        "headers=(('n', b'0'), ('none', None)))"
    )
    assert read != twin.Record("orders", 3, 1)
    assert read != "something else"


def test_a_fetch_that_begins_too_early_hands_out_nothing_before_the_wanted_offset(twin: Any) -> None:
    read = chunk(batch([b"a", b"b", b"c"], 10) + batch([b"d"], 13), 12, twin=twin)
    assert [record.offset for record in taken(read)] == [12, 13]


def test_the_position_moves_with_every_record(twin: Any) -> None:
    read = chunk(batch([b"a", b"b", b"c"], 10), 10, twin=twin)
    seen = []
    for _ in range(4):
        seen.append(read.next_offset)
        taken(read, 1)
    assert seen == [10, 11, 12, 13]
    assert read.end_offset == 13


def test_holes_and_tails_of_compacted_batches_are_passed_over(twin: Any) -> None:
    data = batch([b"a", b"b"], 10, offsets=[12, 15], last_offset_delta=9) + batch([b"c"], 30)
    read = chunk(data, 10, twin=twin)
    assert [record.offset for record in taken(read, 1)] == [12]
    assert read.next_offset == 13
    assert [record.offset for record in taken(read, 1)] == [15]
    assert read.next_offset == 20
    assert [record.offset for record in taken(read)] == [30]
    assert read.next_offset == 31


def test_a_batch_that_compaction_emptied_moves_the_position(twin: Any) -> None:
    read = chunk(batch([], 5, last_offset_delta=4), 5, twin=twin)
    assert taken(read) == []
    assert read.next_offset == 10


def test_markers_behind_the_last_record_count_as_read_with_it(twin: Any) -> None:
    data = batch([b"a"], 0, producer_id=1, transactional=True) + marker(1, 1, ControlType.COMMIT)
    read = chunk(data, twin=twin)
    assert len(taken(read, 1)) == 1
    assert read.next_offset == 2


def test_keys_and_values_are_decoded_with_their_topic(twin: Any) -> None:
    def decode(topic: str, data: bytes) -> str:
        return f"{topic}:{data.decode()}"

    read = chunk(batch([b"a", b"b", None]), twin=twin, decode_key=decode, decode_value=decode)
    assert [(record.key, record.value) for record in taken(read)] == [
        (None, "orders:a"),
        ("orders:k1", "orders:b"),
        (None, None),
    ]


def test_a_record_that_cannot_be_decoded_stays_the_next_one(twin: Any) -> None:
    def decode(topic: str, data: bytes) -> int:
        return int(data)

    read = chunk(batch([b"1", b"x", b"3"], 10), 10, twin=twin, decode_value=decode)
    assert [record.value for record in taken(read, 1)] == [1]
    for _ in range(2):
        with pytest.raises(UndecodableRecord, match=r"orders-3 cannot be read at offset 11: .*ValueError") as raised:
            taken(read, 1)
        assert isinstance(raised.value, SerializationError)
        assert (raised.value.offset, raised.value.next_offset) == (11, 12)
    read.move_to(12)
    assert [record.value for record in taken(read)] == [3]


def test_a_batch_with_a_wrong_checksum_is_named_and_can_be_passed_over(twin: Any) -> None:
    data = bytearray(batch([b"a"], 0) + batch([b"b", b"c"], 1) + batch([b"d"], 3))
    data[len(batch([b"a"], 0)) + 70] ^= 1
    read = chunk(bytes(data), twin=twin)
    assert [record.offset for record in taken(read, 1)] == [0]
    for _ in range(2):
        with pytest.raises(CorruptBatch, match=r"orders-3 cannot be read at offset 1: .*checksum.*seek.*3") as raised:
            taken(read)
        assert raised.value.next_offset == 3
    read.move_to(raised.value.next_offset)
    assert [record.offset for record in taken(read)] == [3]


def test_checksums_are_not_looked_at_when_they_need_not_be(twin: Any) -> None:
    data = bytearray(batch([b"abc"]))
    data[data.index(b"abc")] = ord("x")
    assert [record.value for record in taken(chunk(bytes(data), twin=twin, check_crcs=False))] == [b"xbc"]


def test_broken_records_behind_a_good_checksum_are_an_error_too(twin: Any) -> None:
    from ottla.records._twin import twin as stored

    broken = stored.frame_batch(b"\x7f\x00\x00", 0, 7, 0, 0, 1, 1, -1, -1, -1, 1)
    with pytest.raises(CorruptBatch, match="orders-3 cannot be read at offset 0"):
        taken(chunk(broken, twin=twin))


def test_a_chunk_gives_up_its_bytes_once_and_for_good(twin: Any) -> None:
    data = batch([b"a", b"b"])
    read = chunk(data, twin=twin)
    assert read.size_bytes == len(data)
    taken(read, 1)
    assert read.release() == len(data)
    assert read.release() == 0
    assert read.size_bytes == 0
    assert read.mode is ChunkMode.DROPPED
    read.mode = ChunkMode.READY
    assert read.mode is ChunkMode.DROPPED
    assert taken(read) == []
    assert read.next_offset == 1


def test_a_chunk_that_is_held_back_hands_out_nothing(twin: Any) -> None:
    read = chunk(batch([b"a", b"b"]), twin=twin)
    read.mode = ChunkMode.HELD
    read.detach()
    assert taken(read) == []
    read.mode = ChunkMode.READY
    assert len(taken(read)) == 2


def test_the_iterator_settles_a_record_when_the_next_one_is_asked_for(twin: Any) -> None:
    first, second = chunk(batch([b"a", b"b"], 0), twin=twin), chunk(batch([b"c"], 2), 2, twin=twin)
    chunks = iter([first, second, None])
    records = twin.RecordIterator(lambda: next(chunks))
    assert next(records).value == b"a"
    assert (first.settled_offset, first.next_offset) == (0, 1)
    assert next(records).value == b"b"
    assert (first.settled_offset, first.next_offset) == (1, 2)
    assert next(records).value == b"c"
    assert (first.settled_offset, second.settled_offset, second.next_offset) == (2, 2, 3)
    assert list(records) == []
    assert second.settled_offset == 3


def test_the_iterator_leaves_a_chunk_that_was_taken_away(twin: Any) -> None:
    first, second = chunk(batch([b"a", b"b"]), twin=twin), chunk(batch([b"c"]), twin=twin)
    chunks = iter([first, second, None])
    records = twin.RecordIterator(lambda: next(chunks))
    assert next(records).value == b"a"
    first.release()
    assert next(records).value == b"c"


def test_an_iterator_raises_what_is_wrong_and_goes_on_after_a_seek(twin: Any) -> None:
    def decode(topic: str, data: bytes) -> int:
        return int(data)

    read = chunk(batch([b"1", b"x", b"3"]), twin=twin, decode_value=decode)
    chunks = iter([read, None])
    records = twin.RecordIterator(lambda: next(chunks))
    assert next(records).value == 1
    with pytest.raises(UndecodableRecord):
        next(records)
    read.move_to(2)
    assert next(records).value == 3


def test_the_async_iterator_hands_out_everything_in_bursts(twin: Any) -> None:
    supplied = []

    async def read() -> list[Any]:
        chunks = [chunk(batch([b"%d" % index for index in range(5)]), twin=twin), chunk(batch([]), 5, twin=twin)]
        current = chunks[0]

        async def supply() -> Any:
            nonlocal current
            supplied.append(current.settled_offset)
            if current.next_offset == current.end_offset:
                if not chunks[1:]:
                    return None
                current = chunks.pop()
            return current

        return [record.value async for record in twin.AsyncRecordIterator(supply, 2)]

    assert asyncio.run(read()) == [b"0", b"1", b"2", b"3", b"4"]
    # Asked for at the start, after every second record, and when nothing was left; always with all before it settled.
    assert supplied[:3] == [0, 2, 4]


def test_the_async_iterator_can_be_cancelled_while_it_waits(twin: Any) -> None:
    async def read() -> bool:
        async def supply() -> Any:
            await asyncio.get_running_loop().create_future()

        task = asyncio.create_task(anext_of(twin.AsyncRecordIterator(supply, 2)))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return True
        return False

    async def anext_of(records: Any) -> Any:
        return await records.__anext__()

    assert asyncio.run(read())


def test_a_chunk_in_the_middle_of_a_batch_can_be_collected_with_its_cycle(twin: Any) -> None:
    class Holder:
        def __init__(self) -> None:
            self.chunk: Any = None

        def decode(self, topic: str, data: bytes) -> bytes:
            return data

    holder = Holder()
    holder.chunk = chunk(batch([b"a", b"b"]), twin=twin, decode_value=holder.decode)
    assert len(taken(holder.chunk, 1)) == 1
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_who_moves_behind_a_batch_stands_in_its_epoch(twin: Any) -> None:
    data = batch([b"a", b"b"], 0, epoch=3) + batch([b"c", b"d"], 2, epoch=4)
    given = chunk(data, twin=twin)
    epochs = []
    for offset in (1, 2, 3, 4):
        given.move_to(offset)
        epochs.append(given.next_epoch)
    assert epochs == [3, 3, 4, 4]
