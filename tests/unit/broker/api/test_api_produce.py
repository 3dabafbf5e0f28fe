import struct

import pytest
from tests.unit.broker.api.questions import (
    NOW_MS,
    PRODUCE_BY_NAME,
    batch,
    codes,
    compressed,
    consume,
    create_topic,
    fetch,
    produce,
    produce_request,
    values,
)
from tests.unit.broker.transactional_client import TRANSACTION, find_coordinator
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from ottla.records import Codec, Record, build_batch, read_header, set_log_append_time

BY_ID = 13
BATCH_LENGTH_POSITION, MAGIC_POSITION, CRC_POSITION, LAST_DELTA_POSITION, COUNT_POSITION = 8, 16, 17, 23, 57


def with_crc(changed: bytearray) -> bytes:
    """The batch with a CRC that fits what was changed."""
    from ottla.records import crc32c

    struct.pack_into(">I", changed, CRC_POSITION, crc32c(bytes(changed[CRC_POSITION + 4 :])))
    return bytes(changed)


def changed(field_format: str, position: int, value: int, *, fix_crc: bool = True) -> bytes:
    """A batch of two records with one field of its header replaced."""
    altered = bytearray(batch(b"one", b"two"))
    struct.pack_into(field_format, altered, position, value)
    return with_crc(altered) if fix_crc else bytes(altered)


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_by_name(client: WireClient, topic: str, version: int) -> None:
    create_topic(client, topic)
    for offset in (0, 2):
        answer = produce(client, topic, batch(b"one", b"two"), version=version)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, offset, -1)
        assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert consume(client, topic, 4) == [b"one", b"two"] * 2


def test_by_topic_id(client: WireClient, topic: str) -> None:
    topic_id = create_topic(client, topic)
    answer = client.ask(produce_request("", batch(b"one"), topic_id=topic_id), ProduceResponse, BY_ID)
    (answered,) = answer.responses
    assert answered.topic_id == topic_id
    assert codes(answered.partition_responses) == [ErrorCode.NONE]
    assert consume(client, topic, 1) == [b"one"]


def test_a_topic_id_nobody_has(client: WireClient) -> None:
    answer = client.ask(produce_request("", batch(b"one"), topic_id=b"?" * 16), ProduceResponse, BY_ID)
    assert codes(answer.responses[0].partition_responses) == [ErrorCode.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_stored_as_they_came(client: WireClient, topic: str, codec: Codec, acks: int) -> None:
    create_topic(client, topic)
    sent = compressed(codec, *(b"value %d" % number for number in range(100)))
    answer = produce(client, topic, sent, acks=acks)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    stored = bytes(fetch(client, topic, 0).records or b"")
    assert stored[MAGIC_POSITION:] == sent[MAGIC_POSITION:]
    assert read_header(stored).compression is codec


@pytest.mark.parametrize("partition", [1, -1, 2**31 - 1])
def test_a_partition_that_is_not_there(client: WireClient, topic: str, partition: int) -> None:
    create_topic(client, topic)
    answer = produce(client, topic, batch(b"one"), partition=partition)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_topic_that_is_not_there_is_not_created(client: WireClient, topic: str) -> None:
    assert produce(client, topic, batch(b"one")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata = client.ask(MetadataRequest(topics=None), MetadataResponse)
    assert topic not in {found.name for found in metadata.topics}


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_acks_that_mean_nothing(client: WireClient, topic: str, acks: int) -> None:
    create_topic(client, topic)
    assert produce(client, topic, batch(b"one"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_partitions_are_answered_one_by_one(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    request = produce_request(topic, batch(b"zero"))
    request.topic_data[0].partition_data += [
        PartitionProduceData(index=7, records=batch(b"seven")),
        PartitionProduceData(index=1, records=changed(">I", CRC_POSITION, 1, fix_crc=False)),
    ]
    (answered,) = client.ask(request, ProduceResponse, 12).responses
    assert {answer.index: answer.error_code for answer in answered.partition_responses} == {
        0: ErrorCode.NONE,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        1: ErrorCode.CORRUPT_MESSAGE,
    }
    assert consume(client, topic, 1) == [b"zero"]
    assert not fetch(client, topic, 0, partition=1).records


def test_no_topics_at_all(client: WireClient) -> None:
    answer = client.ask(ProduceRequest(acks=-1, timeout_ms=1000), ProduceResponse, 12)
    assert answer.responses == []


# What is wrong with a batch


@pytest.mark.parametrize(
    ("records", "code"),
    [
        pytest.param(changed(">I", CRC_POSITION, 12345, fix_crc=False), ErrorCode.CORRUPT_MESSAGE, id="crc"),
        pytest.param(batch(b"one")[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE, id="flipped byte"),
        pytest.param(batch(b"one") + batch(b"two"), ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(changed(">i", COUNT_POSITION, 3), ErrorCode.INVALID_RECORD, id="count too high"),
        pytest.param(changed(">i", COUNT_POSITION, 1), ErrorCode.INVALID_RECORD, id="count too low"),
        pytest.param(changed(">i", COUNT_POSITION, 0), ErrorCode.INVALID_RECORD, id="no records"),
        pytest.param(changed(">i", COUNT_POSITION, -1), ErrorCode.INVALID_RECORD, id="negative count"),
        pytest.param(changed(">i", LAST_DELTA_POSITION, 5), ErrorCode.INVALID_RECORD, id="last offset delta"),
        pytest.param(changed(">q", 0, 17, fix_crc=False), ErrorCode.INVALID_RECORD, id="base offset"),
        pytest.param(changed(">i", BATCH_LENGTH_POSITION, 10, fix_crc=False), ErrorCode.CORRUPT_MESSAGE, id="length"),
        pytest.param(changed(">i", BATCH_LENGTH_POSITION, -1, fix_crc=False), ErrorCode.CORRUPT_MESSAGE, id="minus"),
        pytest.param(batch(b"one", control=True), ErrorCode.INVALID_RECORD, id="control batch"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="no bytes"),
    ],
)
@pytest.mark.parametrize("version", [8, 12])
def test_what_is_refused(
    client: WireClient, topic: str, records: bytes, code: ErrorCode, version: int, target: str
) -> None:
    create_topic(client, topic)
    answer = produce(client, topic, records, version=version)
    assert (ErrorCode(answer.error_code), answer.base_offset) == (code, -1)
    assert answer.error_message or target == "kafka", "Apache Kafka does not always say why"
    assert not fetch(client, topic, 0).records
    assert produce(client, topic, batch(b"good")).base_offset == 0


def test_a_batch_that_is_too_large(client: WireClient, topic: str) -> None:
    fitting = batch(b"x" * 900)
    create_topic(client, topic, configs={"max.message.bytes": str(len(fitting))})
    assert produce(client, topic, fitting).error_code == ErrorCode.NONE
    assert produce(client, topic, batch(b"x" * 901)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert values(fetch(client, topic, 0)) == [b"x" * 900]


def test_zstd_needs_version_7(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    sent = compressed(Codec.ZSTD, b"one")
    assert produce(client, topic, sent, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, topic, sent, version=7).error_code == ErrorCode.NONE


def test_a_compacted_topic_wants_keys(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"cleanup.policy": "compact"})
    assert produce(client, topic, batch(b"one", key=None)).error_code == ErrorCode.INVALID_RECORD
    assert produce(client, topic, batch(b"one")).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("configs", "timestamp"), [({}, 2**62), ({"message.timestamp.before.max.ms": "1000"}, 1)])
def test_timestamps_out_of_bounds(client: WireClient, topic: str, configs: dict[str, str], timestamp: int) -> None:
    create_topic(client, topic, configs=configs)
    answer = produce(client, topic, batch(b"one", timestamp=timestamp))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP


def named(answer: PartitionProduceResponse) -> list[int]:
    """The records at fault, of which each says what is wrong with it."""
    assert answer.error_message
    assert all(error.batch_index_error_message for error in answer.record_errors)
    return [error.batch_index for error in answer.record_errors]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_records_without_a_key_are_named(client: WireClient, topic: str, codec: Codec) -> None:
    create_topic(client, topic, configs={"cleanup.policy": "compact"})
    keys = [b"a", None, b"b", None]
    sent = build_batch([Record(timestamp=NOW_MS, key=key, value=b"v") for key in keys], codec=codec)
    answer = produce(client, topic, sent)
    assert (answer.error_code, named(answer)) == (ErrorCode.INVALID_RECORD, [1, 3])


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize(
    ("configs", "key", "places"),
    [
        ({}, b"k", [2, 3]),
        ({"message.timestamp.before.max.ms": "1000"}, b"k", [0, 2, 3]),
        ({"message.timestamp.before.max.ms": "1000", "compression.type": "gzip"}, b"k", [0, 2, 3]),
        ({"cleanup.policy": "compact"}, None, [0, 1, 2, 3]),
    ],
)
def test_records_out_of_time_are_named(
    client: WireClient, topic: str, configs: dict[str, str], key: bytes | None, places: list[int], codec: Codec
) -> None:
    """Beside one of them, records that lack a key do not make the error of the batch."""
    create_topic(client, topic, configs=configs)
    keys_and_times = [(key, 1), (key, -1), (b"k", 2**61), (b"k", 2**62)]
    sent = build_batch([Record(timestamp=time, key=own, value=b"v") for own, time in keys_and_times], codec=codec)
    answer = produce(client, topic, sent)
    assert (answer.error_code, named(answer)) == (ErrorCode.INVALID_TIMESTAMP, places)
    assert produce(client, topic, batch(b"good", timestamp=-1)).base_offset == 0


def test_a_refused_batch_names_no_records_before_version_8(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"cleanup.policy": "compact"})
    answer = produce(client, topic, batch(b"one", key=None), version=7)
    assert (answer.error_code, answer.record_errors) == (ErrorCode.INVALID_RECORD, [])


@pytest.mark.usefixtures("ottla_only")
def test_at_most_10_000_records_are_named(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"cleanup.policy": "compact"})
    answer = produce(client, topic, build_batch([Record(timestamp=NOW_MS)] * 10_001))
    assert named(answer) == list(range(10_000))


def _produce_with_a_stamp(client: WireClient, topic: str, codec: Codec) -> PartitionProduceResponse:
    """A batch that says that its times are the broker's."""
    create_topic(client, topic, configs={"message.timestamp.type": "LogAppendTime"})
    stamped = bytearray(build_batch([Record(timestamp=NOW_MS, key=b"k", value=b"v")] * 2, codec=codec))
    set_log_append_time(stamped, 0, NOW_MS)
    return produce(client, topic, bytes(stamped))


def test_all_records_of_a_batch_with_the_broker_s_stamp_are_named(client: WireClient, topic: str) -> None:
    answer = _produce_with_a_stamp(client, topic, Codec.NONE)
    assert (answer.error_code, named(answer)) == (ErrorCode.INVALID_TIMESTAMP, [0, 1])


@pytest.mark.usefixtures("ottla_only")
def test_no_record_of_a_compressed_batch_with_the_broker_s_stamp_is_named(client: WireClient, topic: str) -> None:
    """How many there are says its header alone."""
    answer = _produce_with_a_stamp(client, topic, Codec.LZ4)
    assert (answer.error_code, named(answer)) == (ErrorCode.INVALID_TIMESTAMP, [])


def test_log_append_time(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"message.timestamp.type": "LogAppendTime"})
    answer = produce(client, topic, batch(b"one", timestamp=1))
    assert answer.log_append_time_ms > NOW_MS
    stored = read_header(bytes(fetch(client, topic, 0).records or b""))
    assert stored.has_log_append_time
    assert stored.max_timestamp == answer.log_append_time_ms


def test_the_codec_of_the_topic(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"compression.type": "gzip"})
    assert produce(client, topic, compressed(Codec.LZ4, b"one", b"two")).error_code == ErrorCode.NONE
    answer = fetch(client, topic, 0)
    assert read_header(bytes(answer.records or b"")).compression is Codec.GZIP
    assert values(answer) == [b"one", b"two"]


@pytest.mark.usefixtures("ottla_only")
def test_null_instead_of_records(client: WireClient, topic: str) -> None:
    """Apache Kafka 4.3 never answers this one."""
    create_topic(client, topic)
    assert produce(client, topic, None).error_code == ErrorCode.INVALID_RECORD


def test_a_topic_is_not_asked_for_more_replicas_than_it_has(client: WireClient, topic: str) -> None:
    create_topic(client, topic, configs={"min.insync.replicas": "2"})
    assert produce(client, topic, batch(b"one"), acks=-1).error_code == ErrorCode.NONE
    assert produce(client, topic, batch(b"two"), acks=1).error_code == ErrorCode.NONE
    assert values(fetch(client, topic, 0)) == [b"one", b"two"]


def test_a_transactional_batch_needs_a_transaction(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    records = batch(b"one", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    assert produce(client, topic, records).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    request = produce_request(topic, records)
    request.transactional_id = "nobody's"
    find_coordinator(client, "nobody's", key_type=TRANSACTION)
    code = ErrorCode.NOT_ENOUGH_REPLICAS
    while code == ErrorCode.NOT_ENOUGH_REPLICAS:  # Apache Kafka still loads its coordinator.
        (answered,) = client.ask(request, ProduceResponse, PRODUCE_BY_NAME).responses
        code = ErrorCode(answered.partition_responses[0].error_code)
    assert code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


# acks=0


def test_acks_0_is_not_answered(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    for value in (b"one", b"two"):
        client.send(produce_request(topic, batch(value), acks=0), 12)
    assert consume(client, topic, 2) == [b"one", b"two"]


def test_acks_0_hangs_up_when_refused(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic)
    client.send(produce_request(topic, batch(b"one")[:-1] + b"?", acks=0), 12)
    assert client.is_closed()
    with WireClient(api_port) as other:
        assert not fetch(other, topic, 0).records
