"""Tables that AsyncProducer sends arrive row by row, on both brokers."""

import asyncio
import json
from typing import Any

import pyarrow as pa
import pytest
from tests.compat.client.producer.reading import Place

from ottla.client.errors import ConfigError, OttlaError, RecordTooLarge, SerializationError, UnknownTopic
from ottla.client.producer._twin import twin
from ottla.client.producer.producer import AsyncProducer
from ottla.client.producer.tables import TableMetadata


def send(place: Place, topic: str, table: Any, settings: dict[str, Any] | None = None, **columns: Any) -> TableMetadata:
    async def run() -> TableMetadata:
        async with AsyncProducer(place.bootstrap, **(settings or {})) as producer:
            return await (await producer.send_table(topic, table, **columns))

    return asyncio.run(run())


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_keys_pick_the_partitions_and_rows_keep_their_order(place: Place, topic: str, codec: str) -> None:
    place.make_topic(topic, 3)
    keys = [f"user-{number % 50}" if number % 7 else None for number in range(5000)]
    values = [b"%05d" % number for number in range(5000)]
    table = pa.table({"user_id": keys, "body": pa.array(values, pa.binary())})
    metadata = send(place, topic, table, {"compression_type": codec}, key="user_id", value="body", batch_bytes=5000)
    seen = place.read(topic, 3)
    assert metadata.record_count == len(seen) == 5000
    assert sum(one.end_offset - one.first_offset for one in metadata.ranges) == 5000
    assert sorted(one.value or b"" for one in seen) == values
    for partition in range(3):
        own = [one.value or b"" for one in seen if one.partition == partition and one.key is not None]
        assert own == sorted(own)
        assert own
    for one in seen:
        if one.key is not None:
            assert one.partition == (twin.murmur2(one.key) & 0x7FFFFFFF) % 3
        number = int(one.value or b"")
        assert one.key == (None if keys[number] is None else str(keys[number]).encode())


def test_rows_become_json_objects_of_the_columns_without_another_use(place: Place, topic: str) -> None:
    place.make_topic(topic, 2)
    table = pa.table(
        {
            "id": [1, 2, 3],
            "name": ["a", None, 'say "hi"'],
            "price": [1.5, 2.0, None],
            "sent": pa.array([1000, 2000, 3000], pa.timestamp("ms")),
            "where": [1, 0, 1],
            "head": pa.array([[("k", b"v")], [], None], pa.map_(pa.string(), pa.binary())),
        }
    )
    send(place, topic, table, key="id", timestamp="sent", partition="where", headers="head")
    seen = place.read(topic, 2)
    assert [(one.partition, one.key, json.loads(one.value or b""), one.timestamp, one.headers) for one in seen] == [
        (0, b"2", {"name": None, "price": 2.0}, 2000, ()),
        (1, b"1", {"name": "a", "price": 1.5}, 1000, (("k", b"v"),)),
        (1, b"3", {"name": 'say "hi"', "price": None}, 3000, ()),
    ]


def test_a_table_larger_than_the_buffer_goes_through_it(place: Place, topic: str) -> None:
    place.make_topic(topic, 2)
    table = pa.table({"value": pa.array([b"%0500d" % number for number in range(8000)], pa.binary())})
    metadata = send(
        place, topic, table, {"buffer_memory": 300_000}, value="value", batch_bytes=20_000, timestamp=1_700_000_000_000
    )
    assert metadata.record_count == 8000
    seen = place.read(topic, 2)
    assert sorted(int(one.value or b"") for one in seen) == list(range(8000))
    assert {one.partition for one in seen} == {0, 1}
    assert {one.timestamp for one in seen} == {1_700_000_000_000}


def test_records_and_tables_of_one_producer_keep_their_order(place: Place, topic: str) -> None:
    place.make_topic(topic)

    async def run() -> None:
        async with AsyncProducer(place.bootstrap, linger_ms=100) as producer:
            for round_number in range(3):
                producer.send(topic, b"%d-record" % round_number)
                rows = pa.table({"v": pa.array([b"%d-table" % round_number] * 2, pa.binary())})
                await producer.send_table(topic, rows, value="v")
            await producer.flush()

    asyncio.run(run())
    values = [one.value for one in place.read(topic)]
    assert values == [text % number for number in range(3) for text in (b"%d-record", b"%d-table", b"%d-table")]


def test_a_table_in_a_transaction(place: Place, topic: str) -> None:
    place.make_topic(topic, 2)
    table = pa.table({"k": ["a", "b", "c"], "v": [1, 2, 3]})

    async def run() -> None:
        async with AsyncProducer(place.bootstrap, transactional_id=f"{topic}-id") as producer:
            await producer.init_transactions()
            with pytest.raises(OttlaError, match="begin_transaction"):
                await producer.send_table(topic, table, key="k")
            async with producer.transaction():
                await producer.send_table(topic, table, key="k")
            producer.begin_transaction()
            await producer.send_table(topic, table, key="k")
            await producer.abort_transaction()

    asyncio.run(run())
    assert len(place.read(topic, 2, "read_committed")) == 3


def test_a_batch_of_rows_that_is_too_large_is_split(place: Place, topic: str) -> None:
    place.make_topic(topic, max_message_bytes="3000")
    table = pa.table({"v": pa.array([b"%0100d" % number for number in range(200)], pa.binary())})
    metadata = send(place, topic, table, {"compression_type": "none"}, value="v")
    assert metadata.record_count == 200
    assert len(metadata.ranges) > 5
    assert [one.value for one in place.read(topic)] == [b"%0100d" % number for number in range(200)]


def test_a_row_without_a_partition_goes_where_its_key_sends_it(place: Place, topic: str) -> None:
    """And rows that meet in a partition, one sent there by its key and one by name, keep their order."""
    place.make_topic(topic, 3)
    count = 300
    table = pa.table(
        {
            "k": [None if number % 10 == 9 else f"key-{number % 4}" for number in range(count)],
            "v": pa.array([b"%03d" % number for number in range(count)], pa.binary()),
            "where": pa.array([None if number % 2 else number % 3 for number in range(count)], pa.int32()),
        }
    )
    send(place, topic, table, key="k", value="v", partition="where")
    seen = place.read(topic, 3)
    assert len(seen) == count
    for one in seen:
        number = int(one.value or b"")
        if number % 2 == 0:
            assert one.partition == number % 3
        elif one.key is not None:
            assert one.partition == (twin.murmur2(one.key) & 0x7FFFFFFF) % 3
    for partition in range(3):
        placed = [int(one.value or b"") for one in seen if one.partition == partition]
        chosen = [number for number in placed if number % 2 == 0 or number % 10 != 9]
        assert chosen == sorted(chosen)
    nowhere = pa.table({"v": ["a", "b"], "where": pa.nulls(2, pa.int32())})
    send(place, topic, nowhere, value="v", partition="where")
    assert len(place.read(topic, 3)) == count + 2


def test_wrong_tables_are_refused_with_what_to_do(place: Place, topic: str) -> None:
    place.make_topic(topic)
    table = pa.table({"k": ["a"], "n": [1.5], "l": [[1]], "where": [7]})

    async def run() -> None:
        async with AsyncProducer(place.bootstrap) as producer:
            with pytest.raises(ConfigError, match="is no column of the table: it has k, n, l, where"):
                await producer.send_table(topic, table, key="missing")
            with pytest.raises(SerializationError, match="binary or string expected, double came"):
                await producer.send_table(topic, table, key="n", value="k")
            with pytest.raises(SerializationError, match="column l"):
                await producer.send_table(topic, table)
            with pytest.raises(ConfigError, match="partition 7"):
                await producer.send_table(topic, table, value="k", partition="where")
            with pytest.raises(ConfigError, match="0 to 0"):
                await producer.send_table(topic, table, value="k", partition=3)
            with pytest.raises(RecordTooLarge):
                await producer.send_table(topic, pa.table({"v": [b"x" * 2_000_000]}), value="v")
            empty = await producer.send_table(topic, table.slice(0, 0), value="k")
            assert await empty == (topic, 0, ())
        async with AsyncProducer(place.bootstrap, max_block_ms=2_000) as producer:
            with pytest.raises(UnknownTopic):
                await producer.send_table(f"{topic}-missing", table, value="k")

    asyncio.run(run())
    assert place.read(topic) == []
