"""Knowledge of the APIs that create, change, delete and describe topics."""

from tests.compat.questions.knowledge import CREATES, WRITES, Base, about
from tests.compat.questions.mutations import INT32_MAX, TOPIC_NAMES
from tests.compat.questions.question import FRESH, FRESH_ID, NO_SUCH_TOPIC, UNKNOWN_ID, Ask, Topic, topic_id
from tests.compat.questions.stage import DOTTED, EMPTY, PLAIN, SHARED_NAMES

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

TOPIC = 2
NO_CREATION_SINCE = 4
NEW = f"{FRESH}-new"
UNKNOWN = f"{FRESH}-unknown"
METADATA_OF_TOPIC = 9

# Names of settings and values for each, good and bad.
TOPIC_SETTINGS: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("retention.ms", ("1000", "-1", "-2", "0", "x", "", " 5 ", "9223372036854775807", "9223372036854775808", None)),
    ("retention.bytes", ("-1", "-2", "0", "1.5")),
    ("cleanup.policy", ("delete", "compact", "compact,delete", "delete, compact", "", "none", "compact,compact", ",")),
    ("max.message.bytes", ("0", "-1", "1000", "2147483648")),
    ("segment.bytes", ("1048576", "1048575", "14", "13", "0", "2147483647")),
    ("segment.ms", ("1", "0", "-1")),
    ("segment.index.bytes", ("4", "3", "0")),
    ("segment.jitter.ms", ("0", "-1")),
    ("compression.type", ("gzip", "GZIP", "none", "producer", "uncompressed", "lz5", "")),
    ("compression.gzip.level", ("-1", "1", "9", "0", "10")),
    ("compression.zstd.level", ("3", "-131072", "23")),
    ("compression.lz4.level", ("1", "17", "18", "0")),
    ("message.timestamp.type", ("CreateTime", "LogAppendTime", "createtime", "")),
    ("message.timestamp.before.max.ms", ("0", "-1", "9223372036854775807")),
    ("message.timestamp.after.max.ms", ("0", "-1", "3600000")),
    ("min.insync.replicas", ("1", "0", "-1", "2147483647")),
    ("min.cleanable.dirty.ratio", ("0", "1", "0.5", "1.1", "-0.1", "NaN", "x")),
    ("min.compaction.lag.ms", ("0", "-1", "9223372036854775807")),
    ("max.compaction.lag.ms", ("1", "0", "-1")),
    ("delete.retention.ms", ("0", "-1")),
    ("file.delete.delay.ms", ("0", "-1")),
    ("flush.messages", ("1", "0", "-1")),
    ("flush.ms", ("0", "-1")),
    ("index.interval.bytes", ("0", "-1", "4096")),
    ("preallocate", ("true", "false", "TRUE", "yes", "1", "")),
    ("unclean.leader.election.enable", ("true", "maybe")),
    ("leader.replication.throttled.replicas", ("*", "", "0:1", "0:1,1:1", "x", "none", "0:1,*")),
    ("follower.replication.throttled.replicas", ("*", "0-1")),
    ("local.retention.ms", ("-2", "0", "-3")),
    ("local.retention.bytes", ("-2", "-3")),
    ("remote.storage.enable", ("false", "true")),
    ("remote.copy.disable", ("false",)),
    ("remote.log.copy.disable", ("false", "true")),
    ("remote.log.delete.on.disable", ("false",)),
    ("errors.deadletterqueue.topic.name", ("x",)),
    ("no.such.key", ("x", "")),
    ("message.format.version", ("3.0-IV1",)),
    ("message.downconversion.enable", ("true",)),
    ("message.timestamp.difference.max.ms", ("1000",)),
    ("log.retention.ms", ("1000",)),
    ("", ("x", "")),
    ("Retention.Ms", ("1000",)),
    ("internal.segment.bytes", ("1000",)),
)


DESCRIBED = [name for name, _ in TOPIC_SETTINGS if name]


def creation(
    name: str = NEW, partitions: int = 1, replicas: int = 1, configs: dict[str, str | None] | None = None
) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replicas,
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
            )
        ],
        timeout_ms=5000,
    )


def assigned(*replicas: list[int], partitions: int = -1, factor: int = -1) -> CreateTopicsRequest:
    request = creation(partitions=partitions, replicas=factor)
    request.topics[0].assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in enumerate(replicas)
    ]
    return request


def described(name: str) -> Ask:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    return Ask(request, METADATA_OF_TOPIC, settles=True)


def settings_of(name: str) -> Ask:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=DESCRIBED)],
        include_synonyms=True,
    )
    return Ask(request, 4, settles=True)


@about(
    ApiKey.CREATE_TOPICS,
    turn=WRITES,
    topics__name=(*TOPIC_NAMES, PLAIN, "s_dotted", "__cluster_metadata"),
    num_partitions=(-1, 0, -2, 2, -INT32_MAX - 1),
    replication_factor=(-1, 0, 2, -2, 32767, -32768),
    broker_ids=(0, 1, 2, -1, INT32_MAX),
    partition_index=(0, 1, -1, 5),
    topics__configs__name=("retention.ms", "no.such.key", "", "cleanup.policy"),
    topics__configs__value=("1000", "", "x", "-2"),
)
def create_topics_bases(version: int) -> list[Base]:
    then = (described(NEW),)
    many = creation()
    many.topics += [*creation(PLAIN).topics, *creation(f"{FRESH}-b", 2).topics, *creation("a/b").topics]
    assigned_twice = assigned([1], [1])
    assigned_twice.topics[0].assignments[1].partition_index = 0
    assigned_with_gap = assigned([1], [1])
    assigned_with_gap.topics[0].assignments[1].partition_index = 2
    checked = creation(partitions=2)
    checked.validate_only = True
    bases = [
        Base("plain", creation(configs={"retention.ms": "1000"}), then=then),
        Base("only checked", checked, then=then, vary=False),
        Base("assigned", assigned([1]), then=then),
        Base("assigned with counts", assigned([1], partitions=1, factor=1), vary=False),
        Base("assigned and counted", assigned([1], partitions=1), vary=False),
        Base("assigned and replicated", assigned([1], factor=1), vary=False),
        Base("assigned twice", assigned_twice, vary=False),
        Base("assigned with a gap", assigned_with_gap, vary=False),
        Base("assigned unevenly", assigned([1], [1, 2]), vary=False),
        Base("assigned to one twice", assigned([1, 1]), vary=False),
        Base("several", many, vary=False),
        Base("collides", creation("s_dotted"), vary=False),
        Base("defaults", creation(partitions=-1, replicas=-1), then=then, vary=False),
        Base("too many", creation(partitions=10_001), vary=False),
    ]
    return bases + [
        Base(f"{name}={value}", _only_checked(creation(configs={name: value})), vary=False)
        for name, values in TOPIC_SETTINGS
        for value in values
    ]


def _only_checked(request: CreateTopicsRequest) -> CreateTopicsRequest:
    request.validate_only = True
    return request


@about(
    ApiKey.CREATE_PARTITIONS,
    turn=WRITES,
    topics__name=TOPIC_NAMES,
    count=(0, 1, 2, 3, -1, -INT32_MAX - 1),
    broker_ids=(0, 1, 2, -1),
)
def create_partitions_bases(version: int) -> list[Base]:
    def ask(count: int, *assignments: list[int], validate_only: bool = False) -> CreatePartitionsRequest:
        wanted = [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments] or None
        return CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=FRESH, count=count, assignments=wanted)],
            timeout_ms=5000,
            validate_only=validate_only,
        )

    own, then = (Topic(),), (described(FRESH),)
    return [
        Base("one more", ask(2), own, then),
        Base("assigned", ask(2, [1]), own, then),
        Base("only checked", ask(3, validate_only=True), own, then, vary=False),
        Base("too few assigned", ask(3, [1]), own, vary=False),
        Base("too many assigned", ask(2, [1], [1]), own, vary=False),
        Base("assigned to one twice", ask(2, [1, 1]), own, vary=False),
        Base("assigned two replicas", ask(2, [1, 2]), own, vary=False),
        Base("assigned none", ask(2, []), own, vary=False),
    ]


@about(
    ApiKey.DELETE_TOPICS,
    turn=WRITES,
    topic_names=(*TOPIC_NAMES, f"{FRESH}-b"),
    topics__name=(*TOPIC_NAMES, f"{FRESH}-b"),
    topic_id=(bytes(16), UNKNOWN_ID, FRESH_ID, b"\0" * 15 + b"\1"),
)
def delete_topics_bases(version: int) -> list[Base]:
    own = (Topic(), Topic(f"{FRESH}-b"))
    then = (described(FRESH), described(f"{FRESH}-b"))
    if version < 6:
        return [
            Base("one", DeleteTopicsRequest(topic_names=[FRESH], timeout_ms=5000), own, then),
            Base("two", DeleteTopicsRequest(topic_names=[FRESH, NO_SUCH_TOPIC], timeout_ms=5000), own, vary=False),
        ]
    by_name, by_id = DeleteTopicState(name=FRESH), DeleteTopicState(topic_id=FRESH_ID)

    def ask(*topics: DeleteTopicState) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topics=list(topics), timeout_ms=5000)

    return [
        Base("by name", ask(by_name), own, then),
        Base("by id", ask(by_id), own, then),
        Base("by both", ask(by_name, by_id), own, vary=False),
        Base("by id twice", ask(by_id, by_id), own, vary=False),
        Base("two names", ask(by_name, DeleteTopicState(name=f"{FRESH}-b")), own, then, vary=False),
    ]


@about(
    ApiKey.METADATA,
    turn=CREATES,
    topics__name=(*(name for name in TOPIC_NAMES[1:-1] if len(name) != 249), *SHARED_NAMES),
    topic_id=(bytes(16), UNKNOWN_ID, topic_id(PLAIN), b"\0" * 15 + b"\1"),
    allow_auto_topic_creation=(False,),
)
def metadata_bases(version: int) -> list[Base]:
    def ask(*names: str | None, topic_ids: tuple[bytes, ...] = ()) -> MetadataRequest:
        topics = [MetadataRequestTopic(name=name) for name in names]
        topics += [MetadataRequestTopic(name=None, topic_id=one) for one in topic_ids]
        creates = version < NO_CREATION_SINCE
        return MetadataRequest(topics=topics, allow_auto_topic_creation=creates)

    bases = [
        Base("one", ask(PLAIN)),
        Base("two", ask(PLAIN, EMPTY), vary=False),
        Base("one twice", ask(PLAIN, PLAIN), vary=False),
        Base("none", ask(), vary=False) if version else Base("one", ask(DOTTED), vary=False),
        Base("illegal", ask("a/b"), vary=False),
        Base("unknown", ask(UNKNOWN, PLAIN), then=(described(UNKNOWN),), vary=False),
    ]
    if version >= 10:
        bases.append(Base("id and name", _named_with_id(), vary=False))
    if version >= 12:
        bases += [
            Base("by id", ask(topic_ids=(topic_id(PLAIN),))),
            Base("by name and by id", ask(PLAIN, topic_ids=(topic_id(EMPTY),)), vary=False),
            Base("by unknown ids", ask(topic_ids=(UNKNOWN_ID, topic_id(PLAIN), bytes(16))), vary=False),
        ]
    return bases


def _named_with_id() -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=PLAIN, topic_id=topic_id(EMPTY))], allow_auto_topic_creation=False
    )


@about(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    topics__name=(*TOPIC_NAMES, *SHARED_NAMES),
    topic_name=(PLAIN, EMPTY, "", "zzz", "a"),
    response_partition_limit=(0, 1, 2, 4, 5, -1, INT32_MAX),
    partition_index=(0, 1, 2, 3, -1, 1000),
)
def describe_topic_partitions_bases(version: int) -> list[Base]:
    def ask(*names: str, cursor: Cursor | None = None, limit: int = 2000) -> DescribeTopicPartitionsRequest:
        topics = [TopicRequest(name=name) for name in names]
        return DescribeTopicPartitionsRequest(topics=topics, cursor=cursor, response_partition_limit=limit)

    middle = Cursor(topic_name=PLAIN, partition_index=1)
    return [
        Base("one", ask(PLAIN)),
        Base("from the middle", ask(PLAIN, EMPTY, cursor=middle)),
        Base("three in two", ask(PLAIN, EMPTY, DOTTED, limit=4), vary=False),
        Base("unknown among others", ask(EMPTY, NO_SUCH_TOPIC, PLAIN), vary=False),
        Base("cursor of one that is not asked for", ask(DOTTED, cursor=middle), vary=False),
        Base("cursor behind all", ask(EMPTY, cursor=Cursor(topic_name="zzz", partition_index=0)), vary=False),
    ]
