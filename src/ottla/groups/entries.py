"""What is written into `__consumer_offsets`, in Kafka's own format.

| type | key                        | value                                                                    |
|------|----------------------------|--------------------------------------------------------------------------|
| 0, 1 | group, topic, partition    | a committed offset                                                       |
| 2    | group                      | a classic group: generation, protocol, members with their assignments    |
| 3    | group                      | a consumer group: its epoch, and a hash of the topics it reads           |
| 4    | group                      | its topics, as older versions kept them; not written any more            |
| 5    | group, member              | what a member subscribes to, and who it is                               |
| 6    | group                      | the epoch of the target assignment                                       |
| 7    | group, member              | a member's target assignment                                             |
| 8    | group, member              | what a member has now, and what it still has to give back                |
| 16   | group, regular expression  | the topics that a pattern stands for                                     |

Types in between belong to share groups and streams groups.
"""

from ottla.ledger.entries import LedgerKey, LedgerValue, RecordTypes
from ottla.protocol.schema import Int8, Int32, Int64, Struct, Uuid, field


class LegacyOffsetCommitKey(LedgerKey, record_type=0):
    group: str = field("0")
    topic: str = field("0")
    partition: Int32 = field("0")


class LegacyOffsetCommitValue(LedgerValue, of=LegacyOffsetCommitKey, versions=(0, 0), flexible=None):
    offset: Int64 = field("0")
    metadata: str = field("0")
    commit_timestamp: Int64 = field("0")


class OffsetCommitKey(LedgerKey, record_type=1):
    group: str = field("0")
    topic: str = field("0")
    partition: Int32 = field("0")


class OffsetCommitValue(LedgerValue, of=OffsetCommitKey, versions=(0, 4), flexible=4):
    offset: Int64 = field("0+")
    leader_epoch: Int32 = field("3+", default=-1, ignorable=True)
    metadata: str = field("0+")
    commit_timestamp: Int64 = field("0+")
    expire_timestamp: Int64 = field("1", default=-1, ignorable=True)
    topic_id: Uuid = field("4+", tag=0, ignorable=True)


class GroupMetadataKey(LedgerKey, record_type=2):
    group: str = field("0")


class MemberMetadata(Struct):
    member_id: str = field("0+")
    group_instance_id: str | None = field("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = field("0+")
    client_host: str = field("0+")
    rebalance_timeout: Int32 = field("1+", default=-1, ignorable=True)
    session_timeout: Int32 = field("0+")
    subscription: bytes = field("0+")
    assignment: bytes = field("0+")


class GroupMetadataValue(LedgerValue, of=GroupMetadataKey, versions=(0, 4), flexible=4):
    protocol_type: str = field("0+")
    generation: Int32 = field("0+")
    protocol: str | None = field("0+", nullable="0+")
    leader: str | None = field("0+", nullable="0+")
    current_state_timestamp: Int64 = field("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field("0+")


class ConsumerGroupMetadataKey(LedgerKey, record_type=3):
    group_id: str = field("0")


class ConsumerGroupMetadataValue(LedgerValue, of=ConsumerGroupMetadataKey, versions=(0, 0), flexible=0):
    epoch: Int32 = field("0+")
    metadata_hash: Int64 = field("0+", tag=0)


class ConsumerGroupPartitionMetadataKey(LedgerKey, record_type=4):
    group_id: str = field("0")


class PartitionMetadata(Struct):
    partition: Int32 = field("0+")
    racks: list[str] = field("0+")


class TopicMetadata(Struct):
    topic_id: Uuid = field("0+")
    topic_name: str = field("0+")
    num_partitions: Int32 = field("0+")
    partition_metadata: list[PartitionMetadata] = field("0+")


class ConsumerGroupPartitionMetadataValue(
    LedgerValue, of=ConsumerGroupPartitionMetadataKey, versions=(0, 0), flexible=0
):
    topics: list[TopicMetadata] = field("0+")


class ConsumerGroupMemberMetadataKey(LedgerKey, record_type=5):
    group_id: str = field("0")
    member_id: str = field("0")


class ClassicProtocol(Struct):
    name: str = field("0+")
    metadata: bytes = field("0+")


class ClassicMemberMetadata(Struct):
    session_timeout_ms: Int32 = field("0+")
    supported_protocols: list[ClassicProtocol] = field("0+")


class ConsumerGroupMemberMetadataValue(LedgerValue, of=ConsumerGroupMemberMetadataKey, versions=(0, 0), flexible=0):
    instance_id: str | None = field("0+", nullable="0+")
    rack_id: str | None = field("0+", nullable="0+")
    client_id: str = field("0+")
    client_host: str = field("0+")
    subscribed_topic_names: list[str] = field("0+")
    subscribed_topic_regex: str | None = field("0+", nullable="0+")
    rebalance_timeout_ms: Int32 = field("0+", default=-1)
    server_assignor: str | None = field("0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field("0+", nullable="0+", tag=0)


class ConsumerGroupTargetAssignmentMetadataKey(LedgerKey, record_type=6):
    group_id: str = field("0")


class ConsumerGroupTargetAssignmentMetadataValue(
    LedgerValue, of=ConsumerGroupTargetAssignmentMetadataKey, versions=(0, 0), flexible=0
):
    assignment_epoch: Int32 = field("0+")
    assignment_timestamp: Int64 = field("0+", tag=0, ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(LedgerKey, record_type=7):
    group_id: str = field("0")
    member_id: str = field("0")


class TopicPartition(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")


class ConsumerGroupTargetAssignmentMemberValue(
    LedgerValue, of=ConsumerGroupTargetAssignmentMemberKey, versions=(0, 0), flexible=0
):
    topic_partitions: list[TopicPartition] = field("0+")


class ConsumerGroupCurrentMemberAssignmentKey(LedgerKey, record_type=8):
    group_id: str = field("0")
    member_id: str = field("0")


class TopicPartitions(Struct):
    topic_id: Uuid = field("0+")
    partitions: list[Int32] = field("0+")
    assignment_epochs: list[Int32] | None = field("0+", nullable="0+", default=None, tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(
    LedgerValue, of=ConsumerGroupCurrentMemberAssignmentKey, versions=(0, 0), flexible=0
):
    member_epoch: Int32 = field("0+")
    previous_member_epoch: Int32 = field("0+")
    state: Int8 = field("0+")
    assigned_partitions: list[TopicPartitions] = field("0+")
    partitions_pending_revocation: list[TopicPartitions] = field("0+")


class ConsumerGroupRegularExpressionKey(LedgerKey, record_type=16):
    group_id: str = field("0")
    regular_expression: str = field("0")


class ConsumerGroupRegularExpressionValue(
    LedgerValue, of=ConsumerGroupRegularExpressionKey, versions=(0, 0), flexible=0
):
    topics: list[str] = field("0+")
    version: Int64 = field("0+")
    timestamp: Int64 = field("0+")


GROUP_RECORD_TYPES = RecordTypes(
    [
        LegacyOffsetCommitKey,
        OffsetCommitKey,
        GroupMetadataKey,
        ConsumerGroupMetadataKey,
        ConsumerGroupPartitionMetadataKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupRegularExpressionKey,
    ]
)
