"""From a classic group to a consumer group and back, while it runs (`group.consumer.migration.policy`).

    classic group --the first member with the new protocol joins--> consumer group with members of both protocols
    consumer group --the last member with the new protocol goes--> classic group

An upgrade takes over what the classic members had, so nobody has to give anything back because of it; those who are in
the middle of a round are told to begin anew, and are told by the broker then. After a downgrade a round begins.
"""

import logging
from collections.abc import Collection

from ottla.groups.classic import ClassicGroup, ClassicGroups, ClassicMember
from ottla.groups.consumer.changes import group_entry
from ottla.groups.consumer.classic_members import ClassicMembers
from ottla.groups.consumer.embedded import embedded_version, read_assignment, read_subscription, write_assignment
from ottla.groups.consumer.group import CONSUMER_PROTOCOL_TYPE, ConsumerGroup
from ottla.groups.consumer.groups import ConsumerGroups
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.membership import current_entry, metadata_entry
from ottla.groups.consumer.targets import target_entry, target_epoch_entry
from ottla.groups.entries import ClassicMemberMetadata, ClassicProtocol
from ottla.groups.group import Group
from ottla.ledger.entries import Entry
from ottla.ledger.machine import Decision
from ottla.protocol.errors import ErrorCode, KafkaError, MalformedMessage

logger = logging.getLogger(__name__)

MAY_UPGRADE = ("bidirectional", "upgrade")
MAY_DOWNGRADE = ("bidirectional", "downgrade")
NEVER_ASSIGNED_MS = 0


class Migration:
    """Makes the two parts know each other."""

    def __init__(self, classic: ClassicGroups, consumer: ConsumerGroups) -> None:
        self._classic = classic
        self._consumer = consumer
        self._context = consumer.context
        classic.elsewhere = ClassicMembers(consumer)
        consumer.upgrade = self.upgrade
        consumer.downgrade = self.downgrade

    # Up

    def upgrade(self, group: Group, entries: list[Entry]) -> ConsumerGroup:
        """The consumer group that a classic group becomes. It is there once the entries are replayed."""
        self._check_upgrade(group)
        assert isinstance(group, ClassicGroup)
        try:
            upgraded = self._upgraded(group)
        except MalformedMessage as error:
            raise _not_upgraded(group, f"what a member says cannot be read: {error}") from error
        self._classic.tell_waiting(group, ErrorCode.REBALANCE_IN_PROGRESS)
        entries.extend(group.tombstones())
        entries.extend(_entries(upgraded))
        for member in upgraded.members.values():
            assert member.classic is not None
            self._consumer.sessions.alive(group.group_id, member.member_id, member.classic.session_timeout_ms)
        return upgraded

    def _check_upgrade(self, group: Group) -> None:
        settings = self._context.settings()
        if settings.group_consumer_migration_policy not in MAY_UPGRADE:
            raise _not_upgraded(group, "group.consumer.migration.policy does not allow it")
        if group.protocol_type != CONSUMER_PROTOCOL_TYPE or not isinstance(group, ClassicGroup):
            raise _not_upgraded(group, "its members are no consumers")
        if len(group.members) > settings.group_consumer_max_size:
            raise _not_upgraded(group, f"it has more than {settings.group_consumer_max_size} members")

    def _upgraded(self, group: ClassicGroup) -> ConsumerGroup:
        upgraded = ConsumerGroup(group.group_id)
        upgraded.group_epoch = upgraded.assignment_epoch = group.generation
        upgraded.assignment_timestamp_ms = NEVER_ASSIGNED_MS
        protocol = group.protocol or (group.members.elected_protocol() if len(group.members) else "")
        for member in group.members.by_id.values():
            after = self._upgraded_member(group, member, protocol)
            upgraded.targets[member.member_id] = {
                topic_id: frozenset(given) for topic_id, given in after.assigned.items()
            }
            upgraded.put_member(after)
        upgraded.metadata_hash = self._consumer.changes.metadata_hash(upgraded)
        return upgraded

    def _upgraded_member(self, group: ClassicGroup, member: ClassicMember, protocol: str) -> ConsumerMember:
        subscription = read_subscription(member.metadata(protocol))
        return ConsumerMember(
            member.member_id,
            member_epoch=group.generation,
            previous_member_epoch=group.generation,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=frozenset(subscription.topics),
            assigned=self._assigned(group, member),
            classic=ClassicMemberMetadata(
                session_timeout_ms=member.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols
                ],
            ),
        )

    def _assigned(self, group: ClassicGroup, member: ClassicMember) -> dict[bytes, dict[int, int]]:
        if not member.assignment:
            return {}
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _not_upgraded(group, "its assignor keeps data of its own with members, which would be lost")
        topics = self._context.image().topics
        return {
            topics[topic.topic].topic_id: dict.fromkeys(topic.partitions, group.generation)
            for topic in assignment.assigned_partitions
            if topic.topic in topics
        }

    # Down

    def downgrade(self, group: ConsumerGroup, gone: Collection[ConsumerMember]) -> Decision[None] | None:
        """What makes a classic group of those who stay, if all of them speak the classic protocol."""
        gone_ids = {member.member_id for member in gone}
        staying = [group.members[member_id] for member_id in sorted(group.members.keys() - gone_ids)]
        settings = self._context.settings()
        if not staying or not all(member.uses_classic_protocol for member in staying):
            return None
        if settings.group_consumer_migration_policy not in MAY_DOWNGRADE or len(staying) > settings.group_max_size:
            return None
        try:
            members = [self._downgraded_member(member) for member in staying]
        except MalformedMessage as error:
            logger.warning("group %s stays a consumer group: a member cannot be understood: %s", group.group_id, error)
            return None
        adopted = self._classic.adopt(group.group_id, group.group_epoch, members)
        for member_id in group.members:
            self._consumer.sessions.forget(group.group_id, member_id)
        return Decision(None, [*group.tombstones(), *adopted.entries], written=adopted.written)

    def _downgraded_member(self, member: ConsumerMember) -> ClassicMember:
        assert member.classic is not None
        protocols = tuple((protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols)
        version = embedded_version(protocols[0][1])
        return ClassicMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.classic.session_timeout_ms,
            protocols,
            write_assignment(member.assigned, version, self._context.image()),
        )


def _entries(group: ConsumerGroup) -> list[Entry]:
    group_id, members = group.group_id, [group.members[member_id] for member_id in sorted(group.members)]
    return [
        *(metadata_entry(group_id, member) for member in members),
        group_entry(group_id, group.group_epoch, group.metadata_hash),
        *(target_entry(group_id, member.member_id, group.targets[member.member_id]) for member in members),
        target_epoch_entry(group_id, group.assignment_epoch, group.assignment_timestamp_ms),
        *(current_entry(group_id, member) for member in members),
    ]


def _not_upgraded(group: Group, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"classic group {group.group_id} does not become a consumer group: {why}"
    )
