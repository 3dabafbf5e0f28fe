"""Knowledge of the APIs that write and read records."""

from tests.compat.questions.batches import VARIANTS, batch, numbered
from tests.compat.questions.knowledge import WRITES, Base, about
from tests.compat.questions.mutations import INT32_MAX, INT64_MAX, OFFSETS, PARTITIONS, TOPIC_NAMES
from tests.compat.questions.question import FRESH, FRESH_ID, NO_SUCH_TOPIC, UNKNOWN_ID, Ask, Topic, topic_id
from tests.compat.questions.stage import (
    COMPACTED,
    COMPRESSED,
    EMPTY,
    PLAIN,
    PRODUCERS,
    SHARED_NAMES,
    SMALL,
    STAMPED,
    TRIMMED,
)

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.describe_producers import DescribeProducersRequest
from ottla.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

ALL, ONE, NONE = -1, 1, 0
LIST_BY_NAME = 7
TIMESTAMPS = (-1, -2, -3, -4, -5, -6, -7, -100, 0, 1, 1_700_000_000_000, 1_700_000_015_000, 1_800_000_000_000)
SPECIAL_TOPICS = {
    "LogAppendTime": {"message.timestamp.type": "LogAppendTime"},
    "compact": {"cleanup.policy": "compact"},
    "compact and delete": {"cleanup.policy": "compact,delete"},
    "at most 1000 bytes": {"max.message.bytes": "1000"},
    "gzip": {"compression.type": "gzip"},
    "uncompressed": {"compression.type": "uncompressed"},
    "zstd": {"compression.type": "zstd"},
    "strict times": {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"},
    "two replicas in sync": {"min.insync.replicas": "2"},
}


def produce(records: bytes | None, *, acks: int = ALL, name: str = FRESH, index: int = 0) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=5000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=FRESH_ID if name == FRESH else topic_id(name),
                partition_data=[PartitionProduceData(index=index, records=records)],
            )
        ],
    )


def fetch(name: str, offset: int = 0, partition: int = 0, max_wait_ms: int = 0) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=name,
                topic_id=FRESH_ID if name == FRESH else topic_id(name),
                partitions=[FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)],
            )
        ],
    )


def list_offsets(name: str, timestamp: int, partition: int = 0) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=name, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=timestamp)]
            )
        ],
    )


@about(
    ApiKey.PRODUCE,
    turn=WRITES,
    acks=(-1, 1, 2, -2, 100, -32768),
    transactional_id=("", "x", "y" * 300),
    name=TOPIC_NAMES,
    topic_id=(bytes(16), UNKNOWN_ID, b"\xff" * 16),
)
def produce_bases(version: int) -> list[Base]:
    own = (Topic(),)
    read = (Ask(fetch(FRESH), 12),)
    bases = [Base("one batch", produce(VARIANTS["one batch"]), own)]
    bases += [Base(f"records: {label}", produce(data), own, read, vary=False) for label, data in VARIANTS.items()]
    for label, configs in SPECIAL_TOPICS.items():
        bases += [
            Base(f"{label}: {kind}", produce(VARIANTS[kind]), (Topic(configs=configs),), read, vary=False)
            for kind in (
                "one batch",
                "null key",
                "null keys among others",
                "times out of limits",
                "times and null keys",
                "1300 bytes",
                "1300 bytes of zeros in lz4",
                "lz4",
                "zstd",
                "gzip",
                "no timestamp",
                "attributes log append time",
                "two batches",
                "bad record",
                "many records",
            )
        ]
    bases += [
        Base("acks=1", produce(VARIANTS["one batch"], acks=ONE), own, vary=False),
        Base("no acks", produce(VARIANTS["one batch"], acks=NONE), own, silent=True, vary=False),
        Base("no acks, corrupt", produce(VARIANTS["crc=0"], acks=NONE), own, silent=True, vary=False),
        Base(
            "no acks, unknown topic",
            produce(VARIANTS["one batch"], acks=NONE, name=NO_SUCH_TOPIC),
            silent=True,
            vary=False,
        ),
        Base("no records", produce(None), own, hangs=True, vary=False),
        Base("two partitions", _two_partitions(), (Topic(partitions=2),), vary=False),
        Base("one topic twice", _one_topic_twice(), own, vary=False),
        Base("one partition twice", _one_partition_twice(), own, vary=False),
        Base("one good, one unknown", _one_good_one_unknown(), own, vary=False),
    ]
    return bases


def _two_partitions() -> ProduceRequest:
    request = produce(batch(b"a"))
    request.topic_data[0].partition_data.append(PartitionProduceData(index=1, records=VARIANTS["crc=0"]))
    return request


def _one_topic_twice() -> ProduceRequest:
    request = produce(batch(b"a"))
    request.topic_data += produce(batch(b"b"), index=7).topic_data
    return request


def _one_partition_twice() -> ProduceRequest:
    request = produce(batch(b"a"))
    request.topic_data[0].partition_data += produce(batch(b"b", b"c")).topic_data[0].partition_data
    return request


def _one_good_one_unknown() -> ProduceRequest:
    request = produce(batch(b"a"))
    request.topic_data += produce(batch(b"b"), name=NO_SUCH_TOPIC).topic_data
    return request


@about(
    ApiKey.FETCH,
    topic=(*TOPIC_NAMES, *SHARED_NAMES),
    topic_id=(bytes(16), UNKNOWN_ID, *(topic_id(name) for name in SHARED_NAMES)),
    fetch_offset=(*OFFSETS, 4, 6),
    isolation_level=(0, 1, 2, -1, 127),
    min_bytes=(0, 1, -1, 100_000, INT32_MAX, -INT32_MAX - 1),
    max_bytes=(0, 1, 100, -1, INT32_MAX, -INT32_MAX - 1),
    partition_max_bytes=(0, 1, 75, 150, 200, -1, INT32_MAX, -INT32_MAX - 1),
    session_id=(1, -1, 1 << 30),
    session_epoch=(0, 1, -1, -2, INT32_MAX),
    replica_id=(0, 1, 2, -1, -2, -3, INT32_MAX),
    replica_epoch=(0, 1, -1, INT64_MAX),
    cluster_id=("", "x"),
    log_start_offset=(0, 5, -1, INT64_MAX),
    forgotten_topics_data__topic=(PLAIN, "", NO_SUCH_TOPIC),
)
def fetch_bases(version: int) -> list[Base]:
    waiting = fetch(EMPTY, max_wait_ms=10)
    both = fetch(PLAIN)
    both.topics[0].partitions.append(FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=100))
    both.topics += fetch(TRIMMED, 5).topics
    forgetful = fetch(PLAIN)
    if version >= 7:
        forgetful.forgotten_topics_data = [ForgottenTopic(topic=PLAIN, topic_id=topic_id(PLAIN), partitions=[0])]
    bases = [
        Base("records", fetch(PLAIN)),
        Base("trimmed", fetch(TRIMMED, 3)),
        Base("three", both),
        Base("forgetting", forgetful),
        Base("waits", waiting, vary=False),
    ]
    bases += [Base(f"all of {name}", fetch(name), vary=False) for name in SHARED_NAMES]
    bases += [Base(f"from {offset}", fetch(PLAIN, offset, 1), vary=False) for offset in range(6)]
    bases += [Base("zstd", fetch(COMPRESSED, partition=1), vary=False), Base("both", _good_and_bad(), vary=False)]
    return bases


def _good_and_bad() -> FetchRequest:
    request = fetch(PLAIN)
    request.topics += fetch(NO_SUCH_TOPIC).topics
    request.topics += fetch(EMPTY, partition=9).topics
    return request


@about(
    ApiKey.LIST_OFFSETS,
    topics__name=(*TOPIC_NAMES, *SHARED_NAMES),
    timestamp=(*TIMESTAMPS, INT64_MAX, -INT64_MAX - 1),
    isolation_level=(0, 1, 2, -1),
    replica_id=(0, 1, -1, -2, -3, INT32_MAX),
)
def list_offsets_bases(version: int) -> list[Base]:
    bases = [Base(f"{timestamp}", list_offsets(PLAIN, timestamp)) for timestamp in (-1, 1_700_000_000_000)]
    for name in (PLAIN, TRIMMED, COMPRESSED, STAMPED, COMPACTED, EMPTY, PRODUCERS, SMALL):
        bases += [Base(f"{name} at {timestamp}", list_offsets(name, timestamp), vary=False) for timestamp in TIMESTAMPS]
    for partition in (1, 2):
        bases += [
            Base(f"partition {partition} at {timestamp}", list_offsets(PLAIN, timestamp, partition), vary=False)
            for timestamp in (-3, 1_699_999_990_000, 1_700_000_000_500, 1_700_000_001_000, 1_700_000_001_001)
        ]
    return bases


@about(ApiKey.OFFSET_FOR_LEADER_EPOCH, topic=(*TOPIC_NAMES, *SHARED_NAMES), replica_id=(0, 1, -1, -2, -3, INT32_MAX))
def offset_for_leader_epoch_bases(version: int) -> list[Base]:
    def ask(name: str, epoch: int) -> OffsetForLeaderEpochRequest:
        wanted = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=[wanted])])

    return [Base("plain", ask(PLAIN, 0)), *(Base(name, ask(name, 0), vary=False) for name in SHARED_NAMES)]


@about(ApiKey.DELETE_RECORDS, turn=WRITES, topics__name=TOPIC_NAMES, partition_index=PARTITIONS)
def delete_records_bases(version: int) -> list[Base]:
    def ask(offset: int) -> DeleteRecordsRequest:
        wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
        return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=FRESH, partitions=[wanted])], timeout_ms=5000)

    written = Topic(batches={0: (batch(b"a", b"b"), batch(b"c"), numbered(0))})
    then = (Ask(list_offsets(FRESH, -2), LIST_BY_NAME), Ask(fetch(FRESH, 1), 12))
    return [
        Base("some", ask(1), (written,), then),
        *(Base(f"to {offset}", ask(offset), (written,), then, vary=False) for offset in (0, 2, 3, 4, 5, -1, -2)),
        Base("compacted", ask(1), (Topic(configs={"cleanup.policy": "compact"}),), vary=False),
        Base("both policies", ask(0), (Topic(configs={"cleanup.policy": "compact,delete"}),), vary=False),
    ]


@about(ApiKey.DESCRIBE_PRODUCERS, name=(*TOPIC_NAMES, *SHARED_NAMES), partition_indexes=PARTITIONS)
def describe_producers_bases(version: int) -> list[Base]:
    def ask(name: str, partitions: list[int]) -> DescribeProducersRequest:
        return DescribeProducersRequest(topics=[ProducersTopic(name=name, partition_indexes=partitions)])

    return [Base("producers", ask(PRODUCERS, [0])), Base("plain", ask(PLAIN, [0, 1, 2]))]
