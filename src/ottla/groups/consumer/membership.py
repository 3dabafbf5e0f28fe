"""Who sends a heartbeat: a member that is known, one that is new, or a static one that comes back.

| the member says      | dynamic member                    | static member                                          |
|----------------------|-----------------------------------|--------------------------------------------------------|
| epoch 0              | joins, or starts over             | joins; takes the place of one that left with epoch -2  |
| epoch -1             | leaves                            | leaves for good                                        |
| epoch -2             | -                                 | leaves for a while: its partitions stay its own        |
| any other            | has to be the member's epoch, or the one before it with nothing beyond what the member has   |

The epoch before is good because the answer that brought the new one may have been lost.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH, ConsumerMember
from ottla.groups.consumer.targets import target_entry
from ottla.groups.consumer.tombstones import member_tombstones
from ottla.groups.entries import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
)
from ottla.ledger.entries import Entry
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

MEMBER_CHOOSES_ID_SINCE_VERSION = 1
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))


@dataclass(frozen=True, slots=True)
class Client:
    """Where a request comes from, as it is shown to whoever describes the group."""

    client_id: str
    host: str


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Iterable[str]) -> None:
    """Raise unless the request makes sense in itself."""
    epoch = request.member_epoch
    has_an_id = api_version >= MEMBER_CHOOSES_ID_SINCE_VERSION or epoch > 0 or epoch == LEAVING_EPOCH
    if has_an_id and _is_blank(request.member_id):
        raise _invalid("the member id is empty")
    if _is_blank(request.group_id):
        raise _invalid("the group id is empty")
    if _is_blank(request.instance_id):
        raise _invalid("the instance id is empty; leave it out for a dynamic member")
    if _is_blank(request.rack_id):
        raise _invalid("the rack is empty; leave it out if there is none")
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("whoever joins says its rebalance timeout")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("whoever joins owns no partitions, and says so")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("whoever joins subscribes to topics or to an expression")
    elif epoch == STATIC_LEAVING_EPOCH:
        if request.instance_id is None:
            raise _invalid("only a member with an instance id leaves for a while")
    elif epoch < STATIC_LEAVING_EPOCH:
        raise _invalid(f"{epoch} is no member epoch")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"there is no assignor {request.server_assignor} here; there are {', '.join(assignors)}",
        )


def _is_blank(text: str | None) -> bool:
    """Nothing in it but what Java trims away."""
    return text is not None and not text.strip(_BLANKS)


def _invalid(problem: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, problem)


def owned_partitions(topics: list[TopicPartitions] | None) -> frozenset[tuple[bytes, int]] | None:
    if topics is None:
        return None
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)


def check_epoch(member: ConsumerMember, epoch: int, owned: frozenset[tuple[bytes, int]] | None) -> None:
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return
    is_one_behind = epoch < member.member_epoch and epoch == member.previous_member_epoch
    if is_one_behind and owned is not None and _has_all(member, owned):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.member_id} came with epoch {epoch} and is at {member.member_epoch};"
        " let it give up all partitions and join again",
    )


def _has_all(member: ConsumerMember, owned: frozenset[tuple[bytes, int]]) -> bool:
    return all(index in member.assigned.get(topic_id, ()) for topic_id, index in owned)


def find_static(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """The member that has this instance id now, if it is the one that asks."""
    found = group.static_member(instance_id)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no instance {instance_id}")
    if found.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id} of group {group.group_id} is {found.member_id} now"
        )
    return found


def joining_static(
    group: ConsumerGroup, instance_id: str, member_id: str, *, uses_classic_protocol: bool = False
) -> tuple[ConsumerMember, list[Entry]]:
    """A static member that joins, with what has to be written if it takes the place of another."""
    before = group.static_member(instance_id)
    if before is None:
        return group.members.get(member_id, ConsumerMember(member_id)), []
    both_are_new = not uses_classic_protocol and not before.uses_classic_protocol
    if both_are_new and before.member_epoch != STATIC_LEAVING_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"instance {instance_id} of group {group.group_id} is {before.member_id}, which has not left",
        )
    after = replace(before, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    return after, [
        *member_tombstones(group.group_id, before.member_id),
        metadata_entry(group.group_id, after),
        target_entry(group.group_id, member_id, group.targets.get(before.member_id, {})),
        current_entry(group.group_id, after),
    ]


def metadata_entry(group_id: str, member: ConsumerMember) -> Entry:
    return Entry(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), member.metadata())


def current_entry(group_id: str, member: ConsumerMember) -> Entry:
    return Entry(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), member.current()
    )


def updated(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client) -> ConsumerMember:
    """The member with what the request changes; it speaks the new protocol from now on."""
    names, regex, timeout_ms = (
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.rebalance_timeout_ms,
    )
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.host,
        classic=None,
    )
