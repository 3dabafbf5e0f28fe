"""All consumer groups of one partition of `__consumer_offsets`, and what becomes of heartbeats (see the package).

Kept state changes only when records are replayed. What no restart needs is changed while deciding: the timers of
sessions and of revocations, look-ups of expressions, and which image of the topics a group was last compared with.
"""

import logging
from collections.abc import Callable, Collection
from typing import TypeVar

from ottla.groups.consumer.assignors import topic_order
from ottla.groups.consumer.changes import GroupChanges
from ottla.groups.consumer.description import describe_group
from ottla.groups.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.groups.consumer.keeper import CONSUMER_GROUP_KEYS, GroupKeeper
from ottla.groups.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
    GivenPartitions,
    MemberState,
)
from ottla.groups.consumer.membership import (
    Client,
    check_epoch,
    current_entry,
    find_static,
    joining_static,
    owned_partitions,
    updated,
)
from ottla.groups.consumer.regexes import RegexResolver
from ottla.groups.consumer.sessions import Sessions
from ottla.groups.context import GroupContext
from ottla.groups.group import Group
from ottla.ledger.entries import Entry
from ottla.ledger.machine import Decision, Replayed, Timers
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.consumer_group_describe import DescribedGroup
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.uuids import uuid_to_text

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

Upgrade = Callable[[Group, list[Entry]], ConsumerGroup]
"""Makes a consumer group of a group of another kind, adding what has to be written; raises if that cannot be."""

Downgrade = Callable[[ConsumerGroup, Collection[ConsumerMember]], Decision[None] | None]
"""Makes a classic group of what is left when members go, if that is to be, else None."""


class ConsumerGroups:
    """One method for each request; `upgrade` and `downgrade` are put in by whoever knows classic groups too."""

    def __init__(self, context: GroupContext, timers: Timers, groups: dict[str, Group]) -> None:
        self.context = context
        self.groups = groups
        self.sessions = Sessions(timers, self.expire, self._revocation_took_too_long)
        self.changes = GroupChanges(context, self.sessions, RegexResolver(context, timers, self._regexes_resolved))
        self.upgrade: Upgrade = _no_upgrade
        self.downgrade: Downgrade = _no_downgrade
        self._keeper = GroupKeeper(groups)

    # Records

    def replay(self, record: Replayed) -> None:
        key = record.entry.key
        assert isinstance(key, CONSUMER_GROUP_KEYS)
        self._keeper.replay(record.entry)
        if key.group_id not in self.groups:
            self.changes.forget(key.group_id)

    def loaded(self) -> None:
        """Everybody has the time of a session to be heard of."""
        for group in list(self.groups.values()):
            if not isinstance(group, ConsumerGroup):
                continue
            timeout_ms = self.context.settings_of(group.group_id).group_consumer_session_timeout_ms
            for member in group.members.values():
                self.sessions.alive(group.group_id, member.member_id, timeout_ms)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self.sessions.revoking(group.group_id, member)

    def unload(self, error: KafkaError) -> None:
        """Nobody waits here: heartbeats are answered at once, and timers are gone with the ledger."""

    # Groups

    def find(self, group_id: str) -> ConsumerGroup:
        found = self._keeper.find(group_id)
        if found is None:
            kind = "is not a consumer group" if group_id in self.groups else "does not exist"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} {kind}")
        return found

    def _find_or_make(self, group_id: str, entries: list[Entry]) -> ConsumerGroup:
        """For whoever joins. A group that is new exists once its records are replayed."""
        found = self.groups.get(group_id)
        if found is None:
            return ConsumerGroup(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if found.is_empty:
            entries.extend(found.tombstones())
            return ConsumerGroup(group_id)
        return self.upgrade(found, entries)

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        limit = self.context.settings().group_consumer_max_size
        if len(group.members) >= limit and member_id not in group.members:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"group {group.group_id} has {limit} members already")

    # Heartbeats

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
            return self._leave(request)
        entries: list[Entry] = []
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self._find_or_make(request.group_id, entries) if is_joining else self.find(request.group_id)
        self.check_room(group, request.member_id)
        owned = owned_partitions(request.topic_partitions)
        before = self._sender(group, request, owned, entries)
        after = self.changes.apply(group, before, updated(before, request, client), owned, entries)
        settings = self.context.settings_of(group.group_id)
        self.sessions.alive(group.group_id, after.member_id, settings.group_consumer_session_timeout_ms)
        response = ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.member_epoch,
            heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        )
        if is_joining or _tells_everything(request) or after.assigned != before.assigned:
            response.assignment = _assignment(after.assigned)
        return Decision(response, entries)

    def _sender(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        owned: frozenset[tuple[bytes, int]] | None,
        entries: list[Entry],
    ) -> ConsumerMember:
        """The member as it was, or a new one."""
        member_id = request.member_id or uuid_to_text(self.context.ids.uuid())
        if request.member_epoch == JOINING_EPOCH:
            if request.instance_id is None:
                return group.members.get(member_id, ConsumerMember(member_id))
            member, replacing = joining_static(group, request.instance_id, member_id)
            entries.extend(replacing)
            return member
        if request.instance_id is None:
            member = group.member(member_id)
        else:
            member = find_static(group, request.instance_id, member_id)
        check_epoch(member, request.member_epoch, owned)
        return member

    # Leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> Decision[ConsumerGroupHeartbeatResponse]:
        group = self.find(request.group_id)
        response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.instance_id is None:
            return self.remove(group, [group.member(request.member_id)], response)
        member = find_static(group, request.instance_id, request.member_id)
        if request.member_epoch == LEAVING_EPOCH:
            return self.remove(group, [member], response)
        return Decision(response, [current_entry(group.group_id, member.as_left_for_a_while())])

    def remove(self, group: ConsumerGroup, members: Collection[ConsumerMember], answer: Answer) -> Decision[Answer]:
        """What becomes of a group that members leave: it goes on without them, or as a classic group."""
        if not members:
            return Decision(answer)
        downgraded = self.downgrade(group, members)
        if downgraded is None:
            return Decision(answer, self.changes.remove(group, members))
        return Decision(answer, downgraded.entries, written=downgraded.written)

    def expire(self, group_id: str, member_id: str, reason: str) -> Decision[None]:
        group = self._keeper.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return Decision(None)
        logger.info("group %s: member %s is put out: %s", group_id, member_id, reason)
        return self.remove(group, [member], None)

    def _revocation_took_too_long(self, group_id: str, member_id: str, epoch: int) -> Decision[None]:
        group = self._keeper.find(group_id)
        member = None if group is None else group.members.get(member_id)
        if member is None or member.member_epoch != epoch:
            return Decision(None)
        return self.expire(group_id, member_id, f"it did not give partitions back in epoch {epoch}")

    def _regexes_resolved(self, group_id: str, resolved: dict[str, ResolvedRegex]) -> Decision[None]:
        group = self._keeper.find(group_id)
        return Decision(None) if group is None else Decision(None, self.changes.resolve(group, resolved))

    # Looking

    def describe(self, group_id: str) -> DescribedGroup:
        default_assignor = self.context.settings().group_consumer_assignors[0]
        return describe_group(self.find(group_id), default_assignor, self.context.image())


def _tells_everything(request: ConsumerGroupHeartbeatRequest) -> bool:
    """So does a member that starts over, or is not sure what its last request became of: it wants all of the answer."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None


def _assignment(partitions: GivenPartitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions[topic_id]))
            for topic_id in sorted(partitions, key=topic_order)
        ]
    )


def _no_upgrade(group: Group, entries: list[Entry]) -> ConsumerGroup:
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group.group_id} is not a consumer group")


def _no_downgrade(group: ConsumerGroup, members: Collection[ConsumerMember]) -> Decision[None] | None:
    return None
