"""Questions whose answers depend on what was asked before: each a few requests on one topic of its own."""

from collections.abc import Iterator

from tests.compat.questions.about_configs import APPEND, BROKER, DELETE, SET, alteration, increment
from tests.compat.questions.about_records import LIST_BY_NAME, fetch, list_offsets, produce
from tests.compat.questions.about_topics import NEW, TOPIC, creation, described, settings_of
from tests.compat.questions.batches import LONG_AGO_MS, PRODUCER, batch, numbered
from tests.compat.questions.question import FRESH, FRESH_ID, SESSION, Ask, Case, Topic

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

BY_NAME = 12
WRITTEN = Topic(partitions=2, batches={0: tuple(batch(b"v%d" % number) for number in range(4)), 1: (batch(b"x"),)})


def sequences() -> Iterator[Case]:
    yield from _fetch_sessions()
    yield from _idempotent_producers()
    yield from _offsets_by_time()
    yield from _new_topics()
    yield from _deleted_topics()
    yield from _deleted_records()
    yield from _settings()


def _case(label: str, asks: list[Ask], *topics: Topic) -> Case:
    return Case(asks[0].api, asks[0].version, label, tuple(asks), topics)


# Fetch sessions


def _session(
    epoch: int, *partitions: int, offset: int = 0, session: int = SESSION, forget: tuple[int, ...] = ()
) -> FetchRequest:
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchTopic(
                topic=FRESH,
                topic_id=FRESH_ID,
                partitions=[
                    FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
                    for index in partitions
                ],
            )
        ],
    )
    if not partitions:
        request.topics = []
    if forget:
        request.forgotten_topics_data = [ForgottenTopic(topic=FRESH, topic_id=FRESH_ID, partitions=list(forget))]
    return request


def _fetch_sessions() -> Iterator[Case]:
    opened = _session(0, 0, 1, session=0)
    plans: dict[str, list[FetchRequest]] = {
        "nothing new": [opened, _session(1), _session(2)],
        "goes on": [opened, _session(1, 0, 1, offset=1), _session(2, 0, offset=4), _session(3)],
        "epoch skipped": [opened, _session(2)],
        "epoch repeated": [opened, _session(1), _session(1)],
        "epoch negative": [opened, _session(-2)],
        "closed": [opened, _session(-1, 0), _session(1)],
        "closed and opened": [opened, _session(0, 1), _session(1)],
        "closed with nothing": [opened, _session(-1), _session(1)],
        "one forgotten": [opened, _session(1, forget=(0,)), _session(2)],
        "all forgotten": [opened, _session(1, forget=(0, 1)), _session(2)],
        "unknown forgotten": [opened, _session(1, forget=(7,)), _session(2)],
        "forgotten and named": [opened, _session(1, 0, forget=(0,)), _session(2)],
        "one added": [_session(0, 0, session=0), _session(1, 1), _session(2)],
        "an unknown one": [_session(0, 0, 9, session=0), _session(1), _session(2)],
        "only an unknown one": [_session(0, 9, session=0), _session(1)],
        "beyond the end": [_session(0, 0, offset=99, session=0), _session(1), _session(2, 0, offset=0), _session(3)],
        "empty": [_session(0, session=0), _session(1)],
    }
    for version in (7, 9, 11, 12, 13, 15, 16, 17, 18):
        for label, plan in plans.items():
            yield _case(f"session: {label}", [Ask(request, version) for request in plan], WRITTEN)
        written = [
            Ask(opened, version),
            Ask(_session(1, 0, 1, offset=4), version),
            Ask(produce(batch(b"new")), BY_NAME),
            Ask(_session(2), version),
            Ask(_session(3), version),
        ]
        yield _case("session: written meanwhile", written, WRITTEN)
        deleted = [
            Ask(opened, version),
            Ask(_delete_records(2), 2),
            Ask(_session(1, 0, offset=4), version),
            Ask(_session(2), version),
        ]
        yield _case("session: trimmed meanwhile", deleted, WRITTEN)
    for version, other in ((12, 13), (13, 12)):
        yield _case("session: names and ids", [Ask(opened, version), Ask(_session(1, 0), other)], WRITTEN)


# Idempotent producers


def _idempotent_producers() -> Iterator[Case]:
    producers = DescribeProducersRequest(topics=[TopicRequest(name=FRESH, partition_indexes=[0])])
    plans: dict[str, list[bytes]] = {
        "in order": [numbered(0), numbered(1), numbered(2, count=3), numbered(5)],
        "the last again": [numbered(0), numbered(1, count=2), numbered(1, count=2)],
        "an old one again": [*(numbered(number) for number in range(5)), numbered(1), numbered(0)],
        "too old to be known": [*(numbered(number) for number in range(7)), numbered(0)],
        "a gap": [numbered(0), numbered(2), numbered(1)],
        "another size": [numbered(0, count=2), numbered(0, count=1), numbered(1, count=1)],
        "a new epoch": [numbered(0), numbered(0, epoch=1), numbered(1, epoch=1)],
        "a new epoch in the middle": [numbered(0), numbered(1, epoch=1), numbered(5, epoch=2)],
        "an old epoch": [numbered(0, epoch=2), numbered(1, epoch=1), numbered(0, epoch=1), numbered(1, epoch=2)],
        "two producers": [
            numbered(0),
            numbered(0, producer=PRODUCER + 5),
            numbered(1),
            numbered(1, producer=PRODUCER + 5),
        ],
        "wrapped": [numbered(2**31 - 2, count=2), numbered(0), numbered(1)],
        "wrapped inside": [numbered(2**31 - 1, count=3), numbered(2), numbered(3)],
        "begins late": [numbered(7), numbered(8), numbered(0)],
        "a plain one between": [numbered(0), batch(b"plain"), numbered(1)],
        "transactional after plain": [numbered(0), numbered(1, transactional=True)],
        "epoch 32767": [numbered(0, epoch=32767), numbered(1, epoch=32767), numbered(0, epoch=0)],
    }
    for version in (3, 7, 9, 11, 12, 13):
        for label, plan in plans.items():
            asks = [Ask(produce(data), version) for data in plan]
            yield _case(f"producer: {label}", [*asks, Ask(producers, 0), Ask(fetch(FRESH), BY_NAME)], Topic())
    epochs = [(-1, -1), (5, 0), (5, 32766), (5, 32767), (0, 0), (2**63 - 1, 1), (5, -1), (-1, 5)]
    for version in (3, 4, 5):
        for identity, epoch in epochs:
            request = InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=1000, producer_id=identity, producer_epoch=epoch
            )
            yield _case(f"producer: id {identity} epoch {epoch}", [Ask(request, version)])


# Offsets


def _offsets_by_time() -> Iterator[Case]:
    times = (
        -1,
        -2,
        -3,
        -4,
        -5,
        LONG_AGO_MS - 1,
        LONG_AGO_MS,
        LONG_AGO_MS + 1000,
        LONG_AGO_MS + 9999,
        LONG_AGO_MS + 10**6,
    )
    contents = {
        "rising": [batch(b"a", b"b"), batch(b"c", b"d", at=LONG_AGO_MS + 9000)],
        "falling": [batch(b"a", at=LONG_AGO_MS + 9000), batch(b"b", b"c")],
        "equal": [batch(b"a"), batch(b"b"), batch(b"c")],
        "none": [batch(b"a", at=-1)],
        "empty": [],
    }
    for version in (1, 4, 6, 7, 8, 9, 10, 11):
        for label, data in contents.items():
            asks = [Ask(produce(one), BY_NAME) for one in data]
            asks += [Ask(list_offsets(FRESH, at), version) for at in times]
            case = _case(f"times: {label}", asks, Topic())
            yield Case(ApiKey.LIST_OFFSETS, version, case.label, case.asks, case.topics)


def _delete_records(offset: int, partition: int = 0) -> DeleteRecordsRequest:
    wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=FRESH, partitions=[wanted])], timeout_ms=5000)


def _deleted_records() -> Iterator[Case]:
    sizes = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=FRESH, partitions=[0, 1])])
    for version in (0, 1, 2):
        for offsets in ((2,), (2, 1), (2, 2), (2, 4), (4,), (-1,), (2, -1), (5,), (2, 5), (-1, 0)):
            asks = [Ask(_delete_records(offset), version) for offset in offsets]
            asks += [Ask(list_offsets(FRESH, at), LIST_BY_NAME) for at in (-1, -2, -3, LONG_AGO_MS)]
            asks += [Ask(fetch(FRESH, offset), BY_NAME) for offset in (0, 1, 2, 3, 4, 5)]
            asks += [Ask(produce(batch(b"after")), BY_NAME), Ask(fetch(FRESH, 4), BY_NAME), Ask(sizes, 4)]
            yield _case(f"deleted: {offsets}", asks, WRITTEN)


# Topics


def _deleted_topics() -> Iterator[Case]:
    delete = DeleteTopicsRequest(topic_names=[FRESH], timeout_ms=5000)
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=FRESH_ID)], timeout_ms=5000)
    by_id_described = MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=FRESH_ID)], allow_auto_topic_creation=False
    )
    for version in (1, 3, 4, 5):
        asks = [Ask(delete, version), described(FRESH), Ask(delete, version)]
        yield _case("deleted again", asks, WRITTEN)
        asks = [
            Ask(delete, version),
            described(FRESH),
            Ask(creation(FRESH), 7),
            described(FRESH),
            Ask(list_offsets(FRESH, -1), LIST_BY_NAME, settles=True),
            Ask(fetch(FRESH), BY_NAME),
        ]
        yield _case("deleted and created", asks, WRITTEN)
    yield _case(
        "deleted by id",
        [
            Ask(by_id, 6),
            described(FRESH),
            Ask(by_id, 6),
            Ask(by_id_described, 12),
            Ask(fetch(FRESH), 13, settles=True),
            Ask(fetch(FRESH), 12, settles=True),
            Ask(produce(batch(b"a")), 13),
            Ask(produce(batch(b"a")), 12),
            Ask(list_offsets(FRESH, -1), LIST_BY_NAME, settles=True),
        ],
        WRITTEN,
    )


def _new_topics() -> Iterator[Case]:
    for version in (2, 4, 5, 6, 7):
        again = [
            Ask(creation(), version),
            described(NEW),
            Ask(creation(), version),
            Ask(creation(partitions=0), version),
        ]
        yield _case("created again", again)
        yield _case(
            "created, differs in case", [Ask(creation(f"{FRESH}-N"), version), Ask(creation(f"{FRESH}-n"), version)]
        )
        yield _case(
            "collides",
            [
                Ask(creation(f"{FRESH}.x_y"), version),
                described(f"{FRESH}.x_y"),
                Ask(creation(f"{FRESH}_x_y"), version),
                Ask(creation(f"{FRESH}.x.y"), version),
            ],
        )
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=FRESH, count=3, assignments=None)], timeout_ms=5000
    )
    for version in (0, 1, 2, 3):
        asks = [
            Ask(grow, version),
            described(FRESH),
            Ask(grow, version),
            Ask(list_offsets(FRESH, -1, 2), LIST_BY_NAME, settles=True),
            Ask(fetch(FRESH, partition=2), BY_NAME),
        ]
        yield _case("grown again", asks, WRITTEN)


# Settings


def _broker_settings(*keys: str) -> Ask:
    wanted = [
        DescribeConfigsResource(resource_type=BROKER, resource_name=name, configuration_keys=list(keys))
        for name in ("1", "")
    ]
    return Ask(DescribeConfigsRequest(resources=wanted, include_synonyms=True), 4, settles=True)


def _settings() -> Iterator[Case]:
    too_large = produce(batch(b"x" * 2000))
    for version in (0, 1):
        asks = [
            Ask(increment(TOPIC, FRESH, ("max.message.bytes", SET, "500")), version),
            settings_of(FRESH),
            Ask(increment(TOPIC, FRESH, ("max.message.bytes", DELETE, None)), version),
            settings_of(FRESH),
            Ask(too_large, BY_NAME, settles=True),
            Ask(increment(TOPIC, FRESH, ("cleanup.policy", APPEND, "compact")), version),
            settings_of(FRESH),
            Ask(increment(TOPIC, FRESH, ("cleanup.policy", SET, "compact")), version),
            settings_of(FRESH),
            Ask(_delete_records(0), 2, settles=True),
        ]
        yield _case("settings: changed and described", asks, WRITTEN)
        key = "log.cleaner.delete.retention.ms"
        asks = []
        for place in ("1", ""):
            asks += [Ask(increment(BROKER, place, (key, SET, "77777777")), version), _broker_settings(key)]
        asks.append(settings_of(FRESH))
        for place in ("1", ""):
            asks += [Ask(increment(BROKER, place, (key, DELETE, None)), version), _broker_settings(key)]
        yield _case("settings: of brokers", asks, WRITTEN)
    for version in (0, 1, 2):
        asks = [
            Ask(alteration(TOPIC, FRESH, {"flush.ms": "7", "retention.ms": "1000"}), version),
            settings_of(FRESH),
            Ask(alteration(TOPIC, FRESH, {"flush.ms": "8"}), version),
            settings_of(FRESH),
            Ask(alteration(TOPIC, FRESH, {}), version),
            settings_of(FRESH),
        ]
        yield _case("settings: replaced", asks, WRITTEN)
