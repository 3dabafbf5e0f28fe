"""Records that AsyncProducer sends arrive as they were sent, on both brokers, whatever the settings."""

import asyncio
from typing import Any

import pytest
from tests.compat.client.producer.reading import Place

from ottla.client.errors import BrokerError, RecordTooLarge, SerializationError, UnknownTopic
from ottla.client.producer.producer import AsyncProducer
from ottla.client.types import RecordMetadata

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_a_record_arrives_as_it_was_sent(place: Place, topic: str) -> None:
    place.make_topic(topic)

    async def send() -> RecordMetadata:
        async with AsyncProducer(place.bootstrap) as producer:
            headers = [("a", b"1"), ("a", None), ("ü", b"")]
            return await producer.send(topic, b"value", b"key", headers=headers, timestamp=1_700_000_000_123)

    assert run(send()) == (topic, 0, 0, 1_700_000_000_123)
    (seen,) = place.read(topic)
    assert seen == (0, 0, b"key", b"value", (("a", b"1"), ("a", None), ("ü", b"")), 1_700_000_000_123)


def test_null_key_null_value_and_empty_ones_are_told_apart(place: Place, topic: str) -> None:
    place.make_topic(topic)

    async def send() -> None:
        async with AsyncProducer(place.bootstrap) as producer:
            for key, value in ((None, None), (b"", b""), (b"k", None), (None, b"v")):
                producer.send(topic, value, key)

    run(send())
    assert [(seen.key, seen.value) for seen in place.read(topic)] == [
        (None, None), (b"", b""), (b"k", None), (None, b"v"),
    ]  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("batch_bytes", [500, 200_000])
def test_many_records_arrive_in_order(place: Place, topic: str, codec: str, batch_bytes: int) -> None:
    place.make_topic(topic)
    values = [b"%d " % number * 20 for number in range(800)]

    async def send() -> list[RecordMetadata]:
        async with AsyncProducer(
            place.bootstrap, compression_type=codec, batch_size=batch_bytes, linger_ms=1
        ) as producer:
            deliveries = []
            for value in values:
                deliveries.append(producer.send(topic, value))
                await producer.drain()
            return [await delivery for delivery in deliveries]

    assert [metadata.offset for metadata in run(send())] == list(range(len(values)))
    assert [seen.value for seen in place.read(topic)] == values


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(place: Place, topic: str, acks: int | str) -> None:
    place.make_topic(topic)

    async def send() -> RecordMetadata:
        async with AsyncProducer(place.bootstrap, acks=acks) as producer:
            await producer.send(topic, b"one")
            return await producer.send(topic, b"two")

    assert run(send()).offset == (-1 if acks == 0 else 1)
    assert [seen.value for seen in place.read(topic)] == [b"one", b"two"]


def test_callbacks_come_in_order_and_an_exception_in_one_harms_nobody(place: Place, topic: str) -> None:
    place.make_topic(topic)
    told: list[tuple[int, Exception | None]] = []

    def on_delivery(metadata: RecordMetadata | None, error: Exception | None) -> None:
        assert metadata is not None
        told.append((metadata.offset, error))
        if metadata.offset == 3:
            raise ValueError("a user's mistake")

    async def send() -> None:
        async with AsyncProducer(place.bootstrap, batch_size=200) as producer:
            for number in range(50):
                producer.send(topic, b"%d" % number, on_delivery=on_delivery)

    run(send())
    assert told == [(offset, None) for offset in range(50)]


def test_log_append_time_is_told(place: Place, topic: str) -> None:
    place.make_topic(topic, message_timestamp_type="LogAppendTime")

    async def send() -> RecordMetadata:
        async with AsyncProducer(place.bootstrap) as producer:
            return await producer.send(topic, b"x", timestamp=5)

    metadata = run(send())
    assert metadata.timestamp == place.read(topic)[0].timestamp > 5


def test_a_batch_that_is_too_large_for_the_topic_is_split(place: Place, topic: str) -> None:
    place.make_topic(topic, max_message_bytes="2000")
    values = [b"%03d" % number + bytes(300) for number in range(40)]
    told: list[int] = []

    async def send() -> tuple[list[RecordMetadata], float]:
        async with AsyncProducer(place.bootstrap, batch_size=16_000) as producer:
            deliveries = [
                producer.send(topic, value, on_delivery=lambda found, _: told.append(found.offset if found else -1))
                for value in values
            ]
            found = [await delivery for delivery in deliveries]
            return found, producer.metrics()["batch-split-total"]

    found, splits = run(send())
    assert splits > 0
    assert [metadata.offset for metadata in found] == list(range(40)) == told
    assert [seen.value for seen in place.read(topic)] == values


def test_errors_say_what_to_do_and_the_producer_goes_on(place: Place, topic: str) -> None:
    place.make_topic(topic, max_message_bytes="2000")
    compacted = place.make_topic(f"{topic}-compacted", cleanup_policy="compact")

    async def send() -> None:
        async with AsyncProducer(place.bootstrap, max_block_ms=3000) as producer:
            with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes"):
                await producer.send(topic, bytes(3000))
            with pytest.raises(RecordTooLarge, match=r"max\.request\.size"):
                producer.send(topic, bytes(2_000_000))
            with pytest.raises(SerializationError, match="value_serializer"):
                producer.send(topic, "text")  # type: ignore[arg-type]  # the mistake that is tested
            with pytest.raises(UnknownTopic, match="create it"):
                await producer.send(f"{topic}-missing", b"x")
            with pytest.raises(UnknownTopic, match="0 to 0"):
                await producer.send(topic, b"x", partition=7)
            with pytest.raises(BrokerError, match="key"):
                await producer.send(compacted, b"x")
            assert (await producer.send(topic, b"good")).offset == 0

    run(send())
    assert [seen.value for seen in place.read(topic)] == [b"good"]


def test_partitions_and_metrics(place: Place, topic: str) -> None:
    place.make_topic(topic, 3)

    async def ask() -> tuple[list[int], float]:
        async with AsyncProducer(place.bootstrap) as producer:
            partitions = await producer.partitions_for(topic)
            for number in range(30):
                producer.send(topic, b"x", partition=number % 3)
            await producer.flush(20)
            return [one.partition for one in partitions], producer.metrics()["record-send-total"]

    assert run(ask()) == ([0, 1, 2], 30)
    assert [seen.partition for seen in place.read(topic, 3)] == [0] * 10 + [1] * 10 + [2] * 10


def test_without_keys_all_partitions_get_their_share(place: Place, topic: str) -> None:
    place.make_topic(topic, 4)

    async def send() -> None:
        async with AsyncProducer(place.bootstrap, batch_size=1000) as producer:
            for number in range(2000):
                producer.send(topic, b"%060d" % number)
                await producer.drain()

    run(send())
    seen = place.read(topic, 4)
    assert len(seen) == 2000
    assert all(sum(one.partition == number for one in seen) > 200 for number in range(4))


def test_serializers_partitioner_and_interceptors(place: Place, topic: str) -> None:
    place.make_topic(topic, 3)

    class Interceptor:
        acknowledged = 0

        def on_send(self, record: Any) -> Any:
            return record._replace(headers=[("seen", b"yes")])

        def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
            self.acknowledged += error is None

    interceptor = Interceptor()

    async def send() -> None:
        async with AsyncProducer[int, dict[str, int]](
            place.bootstrap,
            key_serializer="int",
            value_serializer="json",
            partitioner=lambda name, key, count: key[-1] % count,
            interceptors=[interceptor],
        ) as producer:
            for number in range(6):
                producer.send(topic, {"n": number}, key=number)

    run(send())
    seen = place.read(topic, 3)
    assert [(one.partition, one.key, one.value) for one in seen] == [
        (number % 3, number.to_bytes(4, "big"), b'{"n":%d}' % number) for number in (0, 3, 1, 4, 2, 5)
    ]
    assert all(one.headers == (("seen", b"yes"),) for one in seen)
    assert interceptor.acknowledged == 6
