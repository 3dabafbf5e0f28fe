"""Knowledge of the APIs of groups and their offsets."""

from tests.compat.questions.knowledge import COORDINATES, Base, about
from tests.compat.questions.mutations import INT32_MAX
from tests.compat.questions.question import FRESH, FRESH_ID, NO_SUCH_TOPIC, UNKNOWN_ID, Ask, Topic

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ottla.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = f"{FRESH}-g"
CONSUMER = "consumer"
FETCH_GROUPS_SINCE, FETCH_BY_NAME = 8, 9
LEAVE_MANY_SINCE = 3
OWN_ID_SINCE = 1
KNOWN_ID_SINCE = 4
CHOSEN = "chosen-by-client"

GROUP_IDS = ("", f"{FRESH}.", f"{FRESH} with space", f"{FRESH} ä", FRESH + "x" * 300)
MEMBER_IDS = ("", "x", "y" * 300)
INSTANCE_IDS = (None, "", "i", ".", "..", "a/b", "with space", "i" * 249, "i" * 250)
GENERATIONS = (0, 1, 2, -1, -2, INT32_MAX, -INT32_MAX - 1)
SESSION_TIMEOUTS = (0, -1, 5_999, 6_000, 1_800_000, 1_800_001, INT32_MAX)
STATES = ("Stable", "stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning", "x", "")
COMMITTED_METADATA = (None, "", "x", "ä€", "m" * 4096, "m" * 4097)


def subscription(*topics: str, version: int = 1) -> bytes:
    return bytes((0, version)) + ConsumerProtocolSubscription(topics=list(topics)).encode(version)


def assignment(topic: str, *partitions: int) -> bytes:
    assigned = [AssignedTopic(topic=topic, partitions=list(partitions))]
    return b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=assigned).encode(1)


def join(
    member_id: str = "",
    *,
    instance: str | None = None,
    protocols: tuple[str, ...] = ("range",),
    kind: str = CONSUMER,
    rebalance_ms: int = 1_000,
    topics: tuple[str, ...] = (FRESH,),
) -> JoinGroupRequest:
    metadata = subscription(*topics)
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
    )


def sync(
    member_id: str, generation: int, *given: str, instance: str | None = None, kind: str = CONSUMER
) -> SyncGroupRequest:
    assignments = [SyncGroupRequestAssignment(member_id=name, assignment=assignment(FRESH, 0)) for name in given]
    return SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocol_name="range",
        assignments=assignments,
    )


def heartbeat(member_id: str, generation: int, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance)


def leave(version: int, member_id: str, instance: str | None = None) -> LeaveGroupRequest:
    if version < LEAVE_MANY_SINCE:
        return LeaveGroupRequest(group_id=GROUP, member_id=member_id)
    identity = MemberIdentity(member_id=member_id, group_instance_id=instance, reason="asked")
    return LeaveGroupRequest(group_id=GROUP, members=[identity])


def commit(
    offset: int,
    *,
    generation: int = -1,
    member_id: str = "",
    instance: str | None = None,
    topic: str = FRESH,
    group: str = GROUP,
    metadata: str | None = "note",
) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_leader_epoch=0, committed_metadata=metadata
    )
    named = OffsetCommitRequestTopic(
        name=topic, topic_id=FRESH_ID if topic == FRESH else UNKNOWN_ID, partitions=[partition]
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=[named],
    )


def offsets(
    version: int,
    *partitions: int,
    topic: str = FRESH,
    group: str = GROUP,
    stable: bool = False,
    member_id: str | None = None,
    epoch: int = -1,
) -> OffsetFetchRequest:
    """The committed offsets of these partitions, of all partitions if there are none."""
    stable = stable and version >= 7
    if version < FETCH_GROUPS_SINCE:
        named = [OffsetFetchRequestTopic(name=topic, partition_indexes=list(partitions))]
        return OffsetFetchRequest(group_id=group, topics=named if partitions else None, require_stable=stable)
    named_or_id = OffsetFetchRequestTopics(
        name=topic, topic_id=FRESH_ID if topic == FRESH else UNKNOWN_ID, partition_indexes=list(partitions)
    )
    wanted = OffsetFetchRequestGroup(group_id=group, topics=[named_or_id] if partitions else None)
    if version >= FETCH_BY_NAME:
        wanted.member_id, wanted.member_epoch = member_id, epoch
    return OffsetFetchRequest(groups=[wanted], require_stable=stable)


def delete_offsets(*partitions: int, topic: str = FRESH, group: str = GROUP) -> OffsetDeleteRequest:
    named = OffsetDeleteRequestTopic(
        name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    )
    return OffsetDeleteRequest(group_id=group, topics=[named])


def new_heartbeat(
    member_id: str,
    epoch: int,
    *,
    topics: tuple[str, ...] | None = (FRESH,),
    instance: str | None = None,
    owned: list[tuple[bytes, tuple[int, ...]]] | None = None,
    assignor: str | None = None,
    rebalance_ms: int = 5000,
) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat of the next generation of groups; one that says nothing new has neither topics nor partitions."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=rebalance_ms,
        subscribed_topic_names=None if topics is None else list(topics),
        server_assignor=assignor,
    )
    if epoch == 0 or owned is not None:
        request.topic_partitions = [
            TopicPartitions(topic_id=topic, partitions=list(partitions)) for topic, partitions in owned or []
        ]
    return request


FETCHED = (Ask(offsets(FETCH_BY_NAME), FETCH_BY_NAME),)
# Kafka shows what it has done to a group when its record is written, which is a moment after the answer.
DESCRIBED = (Ask(DescribeGroupsRequest(groups=[GROUP]), 5, settles=True),)
OWN = (Topic(),)


@about(
    ApiKey.OFFSET_COMMIT,
    turn=COORDINATES,
    group_id=GROUP_IDS,
    generation_id_or_member_epoch=GENERATIONS,
    member_id=MEMBER_IDS,
    group_instance_id=INSTANCE_IDS,
    retention_time_ms=(-1, 0, 1, 10**9, -2),
    committed_offset=(0, 1, -1, -2, 2**63 - 1, -(2**63)),
    committed_metadata=COMMITTED_METADATA,
    topic_id=(bytes(16), UNKNOWN_ID, b"\xff" * 16),
)
def offset_commit_bases(version: int) -> list[Base]:
    both = commit(3)
    both.topics += commit(4, topic=NO_SUCH_TOPIC).topics
    return [
        Base("without a group", commit(5), OWN, FETCHED),
        Base("by nobody known", commit(5, generation=1, member_id="x"), OWN, FETCHED, vary=False),
        Base("one good, one unknown", both, OWN, FETCHED, vary=False),
    ]


@about(
    ApiKey.OFFSET_FETCH,
    turn=COORDINATES,
    group_id=GROUP_IDS,
    member_id=(None, *MEMBER_IDS),
    member_epoch=GENERATIONS,
    topic_id=(bytes(16), UNKNOWN_ID, b"\xff" * 16),
)
def offset_fetch_bases(version: int) -> list[Base]:
    bases = [Base("nothing committed", offsets(version, 0, 1), OWN)]
    if version >= 2:
        bases.append(Base("all", offsets(version), OWN, vary=False))
    if version >= FETCH_GROUPS_SINCE:
        twice = offsets(version, 0)
        twice.groups += offsets(version, 0, group=f"{FRESH}-h").groups
        bases += [Base("two groups", twice, OWN, vary=False), Base("no groups", OffsetFetchRequest(), vary=False)]
    return bases


@about(
    ApiKey.JOIN_GROUP,
    turn=COORDINATES,
    group_id=GROUP_IDS,
    session_timeout_ms=SESSION_TIMEOUTS,
    rebalance_timeout_ms=(20_000, INT32_MAX),
    member_id=MEMBER_IDS,
    group_instance_id=INSTANCE_IDS,
    protocol_type=("", CONSUMER, "connect", "x" * 300),
    protocols__name=("", "range", "x"),
    protocols__metadata=(b"", b"\0", b"\0\1\0\0", subscription(NO_SUCH_TOPIC)),
)
def join_group_bases(version: int) -> list[Base]:
    # A group of members that have not joined yet is shown by Kafka once something else was written to its partition.
    described = DESCRIBED if version < KNOWN_ID_SINCE else ()
    bases = [
        Base("unknown member", join("x"), OWN, DESCRIBED, vary=False),
        Base("a first member", join(rebalance_ms=30_000), OWN, described),
        Base("two protocols", join(protocols=("roundrobin", "range"), rebalance_ms=30_000), OWN, described, vary=False),
        Base("connect", join(kind="connect", rebalance_ms=30_000), OWN, described, vary=False),
    ]
    if version >= 5:
        static = join(instance="i", rebalance_ms=30_000)
        bases.append(Base("static", static, OWN))
        bases.append(Base("static, then described", static, OWN, DESCRIBED, vary=False))
    return bases


@about(
    ApiKey.SYNC_GROUP,
    turn=COORDINATES,
    group_id=GROUP_IDS,
    generation_id=GENERATIONS,
    member_id=MEMBER_IDS,
    group_instance_id=INSTANCE_IDS,
    protocol_type=(None, "", CONSUMER, "x"),
    protocol_name=(None, "", "range", "x"),
)
def sync_group_bases(version: int) -> list[Base]:
    return [Base("nobody known", sync("x", 1, "x"))]


@about(
    ApiKey.HEARTBEAT,
    turn=COORDINATES,
    group_id=GROUP_IDS,
    generation_id=GENERATIONS,
    member_id=MEMBER_IDS,
    group_instance_id=INSTANCE_IDS,
)
def heartbeat_bases(version: int) -> list[Base]:
    return [Base("nobody known", heartbeat("x", 1))]


@about(
    ApiKey.LEAVE_GROUP,
    turn=COORDINATES,
    group_id=GROUP_IDS,
    member_id=MEMBER_IDS,
    group_instance_id=INSTANCE_IDS,
    reason=(None, "", "x" * 300),
)
def leave_group_bases(version: int) -> list[Base]:
    bases = [Base("nobody known", leave(version, "x"))]
    if version >= LEAVE_MANY_SINCE:
        many = leave(version, "x")
        many.members += leave(version, "", "i").members
        bases.append(Base("two, nobody known", many, vary=False))
    return bases


@about(ApiKey.DESCRIBE_GROUPS, turn=COORDINATES, groups=GROUP_IDS)
def describe_groups_bases(version: int) -> list[Base]:
    more = DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=version >= 3)
    return [
        Base("unknown", DescribeGroupsRequest(groups=[GROUP])),
        Base("with operations", more, vary=False),
    ]


@about(
    ApiKey.LIST_GROUPS,
    turn=COORDINATES,
    states_filter=STATES,
    types_filter=("classic", "Classic", "consumer", "share", "streams", "x", ""),
)
def list_groups_bases(version: int) -> list[Base]:
    return [Base("none of ours", ListGroupsRequest(), only=FRESH)]


@about(ApiKey.DELETE_GROUPS, turn=COORDINATES, groups_names=GROUP_IDS)
def delete_groups_bases(version: int) -> list[Base]:
    return [Base("unknown", DeleteGroupsRequest(groups_names=[GROUP]))]


@about(ApiKey.OFFSET_DELETE, turn=COORDINATES, group_id=GROUP_IDS)
def offset_delete_bases(version: int) -> list[Base]:
    return [Base("unknown", delete_offsets(0), OWN)]


@about(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    turn=COORDINATES,
    group_id=GROUP_IDS,
    member_id=MEMBER_IDS,
    member_epoch=(1, -1, -2, -3, INT32_MAX),
    instance_id=INSTANCE_IDS,
    rack_id=(None, "", "r"),
    rebalance_timeout_ms=(0, -1, 1, INT32_MAX),
    subscribed_topic_names=(NO_SUCH_TOPIC, "", "a/b", FRESH),
    subscribed_topic_regex=("", "[", "matches-nothing.*"),
    server_assignor=(None, "", "uniform", "range", "x"),
    topic_id=(bytes(16), UNKNOWN_ID),
)
def consumer_group_heartbeat_bases(version: int) -> list[Base]:
    described = (Ask(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1),)
    chosen = CHOSEN if version >= OWN_ID_SINCE else ""
    return [
        Base("unknown member", new_heartbeat("x", 5), OWN, described, vary=False),
        Base("a first member", new_heartbeat(chosen, 0), OWN, described),
        Base("static", new_heartbeat(chosen, 0, instance="i"), OWN, described, vary=False),
    ]


@about(ApiKey.CONSUMER_GROUP_DESCRIBE, turn=COORDINATES, group_ids=GROUP_IDS)
def consumer_group_describe_bases(version: int) -> list[Base]:
    more = ConsumerGroupDescribeRequest(group_ids=[GROUP], include_authorized_operations=True)
    return [
        Base("unknown", ConsumerGroupDescribeRequest(group_ids=[GROUP])),
        Base("with operations", more, vary=False),
    ]
