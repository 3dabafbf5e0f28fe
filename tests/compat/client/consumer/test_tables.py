"""Records as Arrow tables."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.compat.client.consumer.test_reading import numbered
from tests.compat.client.consumer.writing import PATIENCE_SECONDS, Writer, asynchronous

from ottla.client.consumer import AsyncConsumer
from ottla.client.errors import ConfigError, NotAssigned, SerializationError, Unfinished
from ottla.client.types import TopicPartition

QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}


def consumer_of(writer: Writer, **settings: Any) -> AsyncConsumer[Any, Any]:
    return AsyncConsumer(writer.bootstrap, **(QUICK | settings))


@asynchronous
async def test_tables_have_every_record_once(writer: Writer) -> None:
    topic = writer.topic(2)
    for partition in range(2):
        for index, codec in enumerate(["none", "lz4", "zstd"]):
            some = numbered(100, index * 100)
            writer.write(topic, some, partition=partition, codec=codec, headers=[("n", b"1")])
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        tables: list[pa.Table] = []
        async for table in consumer.tables(timeout=PATIENCE_SECONDS):
            tables.append(table)
            if sum(one.num_rows for one in tables) == 600:
                break
        whole = pa.concat_tables(tables)
        assert whole.column_names == [
            "key",
            "value",
            "topic",
            "partition",
            "offset",
            "timestamp",
            "timestampType",
            "headers",
        ]
        for partition in range(2):
            rows = whole.filter(pc.equal(whole.column("partition"), partition))
            assert rows.column("value").to_pylist() == numbered(300)
            assert rows.column("offset").to_pylist() == list(range(300))
        assert set(whole.column("topic").to_pylist()) == {topic}
        assert whole.column("headers")[0].as_py() == [{"key": "n", "value": b"1"}]
        assert await consumer.lag() == {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0}


@asynchronous
async def test_tables_are_cut_and_a_loop_that_breaks_has_consumed_what_it_saw(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(100))
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0)])
        sizes = []
        async for table in consumer.tables(max_rows=7, headers=False):
            sizes.append(table.num_rows)
            assert "headers" not in table.column_names
            if len(sizes) == 3:
                break
        assert sizes == [7, 7, 7]
        assert await consumer.position((topic, 0)) == 21
        (record,) = await consumer.poll(PATIENCE_SECONDS, 1)
        assert record.offset == 21
        rest = await consumer.to_arrow()
        assert rest.column("offset").to_pylist() == list(range(22, 100))


@asynchronous
async def test_a_table_is_no_larger_than_asked_for_and_what_did_not_fit_comes_next(writer: Writer) -> None:
    topic = writer.topic(4)
    for partition in range(4):
        writer.write(topic, numbered(300), partition=partition)
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, partition) for partition in range(4)])
        tables: list[pa.Table] = []
        async for table in consumer.tables(max_bytes=30_000, timeout=PATIENCE_SECONDS):
            assert table.nbytes <= 30_000
            tables.append(table)
            if sum(one.num_rows for one in tables) == 1200:
                break
        whole = pa.concat_tables(tables)
        for partition in range(4):
            rows = whole.filter(pc.equal(whole.column("partition"), partition))
            assert rows.column("value").to_pylist() == numbered(300)
        assert set((await consumer.lag()).values()) == {0}


@asynchronous
async def test_bounded_reads_end_at_the_end_or_before(writer: Writer) -> None:
    topic = writer.topic(2)
    writer.write(topic, numbered(50))
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        head = await consumer.to_arrow(until={(topic, 0): 20})
        assert head.column("offset").to_pylist() == list(range(20))
        assert await consumer.position((topic, 0)) == 20
        assert (await consumer.to_arrow()).column("offset").to_pylist() == list(range(20, 50))
        nothing = await consumer.to_arrow()
        assert (nothing.num_rows, nothing.column_names[:2]) == (0, ["key", "value"])
        writer.write(topic, [b"later"], partition=1)
        assert (await consumer.to_arrow()).column("value").to_pylist() == [b"later"]
        with pytest.raises(ConfigError, match="an offset is"):
            await consumer.to_arrow(until={(topic, 0): -1})
        with pytest.raises(NotAssigned, match="not assigned"):
            await consumer.to_arrow(until={(topic, 7): 1})


@asynchronous
async def test_json_values_become_columns(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, [json.dumps({"user_id": number, "amount": number / 2}).encode() for number in range(10)])
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0)])
        table = await consumer.to_arrow(value_format="json")
        assert table.column("user_id").to_pylist() == list(range(10))
        assert table.schema.field("amount").type == pa.float64()
        consumer.seek_to_beginning()
        schema = pa.schema([("user_id", pa.int32())])
        assert (await consumer.to_arrow(value_format="json", schema=schema)).schema.field("user_id").type == pa.int32()
        writer.write(topic, [b"no json"])
        with pytest.raises(SerializationError, match=f"the value of {topic}-0 at offset 10 is no JSON"):
            await consumer.to_arrow(value_format="json")
        assert await consumer.position((topic, 0)) == 10


@asynchronous
async def test_a_decoder_sees_every_table(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, [b"1", b"2"])

    def decode(table: Any) -> Any:
        numbers = [int(value) for value in table.column("value").to_pylist()]
        return table.set_column(table.column_names.index("value"), "number", [numbers])

    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0)])
        assert (await consumer.to_arrow(decoder=decode)).column("number").to_pylist() == [1, 2]
        consumer.seek_to_beginning()
        with pytest.raises(SerializationError, match="rows must be kept"):
            await consumer.to_arrow(decoder=lambda table: table.slice(1))
        writer.write(topic, [b"x"])
        with pytest.raises(SerializationError, match=r"the decoder refused a table.*ValueError"):
            await consumer.to_arrow(decoder=decode)
        consumer.seek((topic, 0), 0)
        assert (await consumer.to_arrow()).num_rows == 3


@asynchronous
async def test_options_that_do_not_fit_are_refused(writer: Writer) -> None:
    topic = writer.topic()
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0)])
        for options in (
            {"value_format": "avro"},
            {"schema": pa.schema([])},
            {"value_format": "json", "decoder": lambda table: table},
        ):
            with pytest.raises(ConfigError):
                await consumer.to_arrow(**options)
        with pytest.raises(ConfigError, match="at least 1"):
            await anext(consumer.tables(max_rows=0))


@asynchronous
async def test_frames_of_polars_and_pandas_have_the_same_rows(writer: Writer) -> None:
    topic = writer.topic()
    orders = [{"user": f"u{number % 3}", "amount": number * 1.5} for number in range(30)]
    writer.write(topic, [json.dumps(order).encode() for order in orders])
    total = sum(order["amount"] for order in orders if order["user"] == "u1")  # type: ignore[misc]
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0, 0)])
        frame = await consumer.to_polars(value_format="json")
        assert frame["offset"].to_list() == list(range(30))
        assert frame.filter(frame["user"] == "u1")["amount"].sum() == total
        consumer.seek_to_beginning()
        table = await consumer.to_pandas(value_format="json")
        assert list(table["offset"]) == list(range(30))
        assert table[table["user"] == "u1"]["amount"].sum() == total


@asynchronous
async def test_tables_up_to_an_offset_end_there_and_fetch_nothing_behind_it(writer: Writer) -> None:
    topic = writer.topic(2)
    for _ in range(20):
        writer.write(topic, [b"x" * 50_000] * 10)
    writer.write(topic, numbered(5), partition=1)
    async with consumer_of(writer, max_partition_fetch_bytes=100_000) as consumer:
        consumer.assign([(topic, 0, 3), (topic, 1, 0)])
        until = {(topic, 0): 45, (topic, 1): 5}
        columns = ["timestamp", "partition", "offset"]
        tables = [table async for table in consumer.tables(until=until, columns=columns, timestamp_unit="us")]
        whole = pa.concat_tables(tables)
        assert whole.column_names == ["partition", "offset", "timestamp"]
        assert whole.schema.field("timestamp").type == pa.timestamp("us", "UTC")
        rows = sorted(zip(whole.column("partition").to_pylist(), whole.column("offset").to_pylist(), strict=True))
        assert rows == [(0, offset) for offset in range(3, 45)] + [(1, offset) for offset in range(5)]
        assert consumer.metrics()["bytes_fetched"] < 9_000_000
        # What follows is read as ever.
        (record,) = await consumer.poll(PATIENCE_SECONDS, 1)
        assert (record.partition, record.offset) == (0, 45)


@asynchronous
async def test_a_bounded_read_that_gets_nothing_in_time_says_so(writer: Writer) -> None:
    topic = writer.topic()
    writer.write(topic, numbered(5))
    async with consumer_of(writer) as consumer:
        consumer.assign([(topic, 0, 0)])
        tables = consumer.tables(until={(topic, 0): 7}, timeout=1.0)
        assert (await anext(tables)).num_rows == 5
        with pytest.raises(Unfinished, match="before all partitions were at their ends"):
            await anext(tables)
        assert await consumer.position((topic, 0)) == 5
        with pytest.raises(NotAssigned):
            await anext(consumer.tables(until={("other", 0): 7}))
        wrongs: list[dict[str, Any]] = [
            {"columns": ["price"]},
            {"columns": []},
            {"columns": ["key"], "value_format": "json"},
        ]
        for wrong in wrongs:
            with pytest.raises(ConfigError):
                await anext(consumer.tables(**wrong))
