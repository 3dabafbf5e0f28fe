"""A classic group as a record, and back."""

from collections.abc import Mapping

from ottla.groups.classic.group import ClassicGroup, State
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.sessions import Sessions
from ottla.groups.entries import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ottla.ledger import Entry
from ottla.runtime import Clock

# The version that Kafka 4.3 writes; it reads a newer one that no release of it has written so far.
VALUE_VERSION = 3
UNKNOWN_TIME = -1
NO_REBALANCE_TIMEOUT = -1


def entry_of(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> Entry:
    """The group with these assignments, empty ones for who has none; with what members have if none are given."""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol),
            assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
        )
        for member in group.members.by_id.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.members.leader,
        current_state_timestamp=UNKNOWN_TIME if group.state_since_ms is None else group.state_since_ms,
        members=members,
    )
    return Entry(GroupMetadataKey(group=group.group_id), value, VALUE_VERSION)


def group_of(group_id: str, value: GroupMetadataValue, clock: Clock, sessions: Sessions) -> ClassicGroup:
    """The group that a record tells of. Of each member only the protocol is known that the group had agreed on."""
    timestamp = value.current_state_timestamp
    group = ClassicGroup(
        group_id,
        clock,
        sessions,
        state=State.STABLE if value.members else State.EMPTY,
        state_since_ms=None if timestamp == UNKNOWN_TIME else timestamp,
        generation=value.generation,
        agreed_type=value.protocol_type or None,
        protocol=value.protocol,
    )
    for member in value.members:
        session_timeout_ms, rebalance_timeout_ms = member.session_timeout, member.rebalance_timeout
        group.members.add(
            ClassicMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                session_timeout_ms if rebalance_timeout_ms == NO_REBALANCE_TIMEOUT else rebalance_timeout_ms,
                session_timeout_ms,
                ((value.protocol or "", member.subscription),),
                member.assignment,
            )
        )
    if value.leader in group.members.by_id:
        group.members.leader = value.leader
    group.look_at_subscriptions()
    return group
