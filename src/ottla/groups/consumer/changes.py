"""What follows from a member that came, changed or went: epochs, a target, the member's next step.

The steps are the same for members of both protocols; see the package for their order.
"""

from collections.abc import Collection, Mapping

from ottla.cluster.image import TopicImage
from ottla.groups.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.groups.consumer.member import ConsumerMember, MemberState
from ottla.groups.consumer.membership import current_entry, metadata_entry
from ottla.groups.consumer.metadata_hash import MetadataHashes
from ottla.groups.consumer.reconciliation import Reconciliation
from ottla.groups.consumer.regexes import RegexChange, RegexResolver, regex_entry
from ottla.groups.consumer.sessions import Sessions
from ottla.groups.consumer.subscriptions import (
    Subscriptions,
    subscriptions_of,
    with_member,
    with_resolved,
    without_members,
)
from ottla.groups.consumer.targets import Target, compute_target, last_target, may_compute, topic_ids
from ottla.groups.consumer.tombstones import member_tombstones, regex_tombstone
from ottla.groups.context import GroupContext
from ottla.groups.entries import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, ConsumerGroupPartitionMetadataKey
from ottla.ledger.entries import Entry

Owned = frozenset[tuple[bytes, int]] | None


class GroupChanges:
    """Decides; entries are added to the list that is handed in."""

    def __init__(self, context: GroupContext, sessions: Sessions, resolver: RegexResolver) -> None:
        self._context = context
        self._sessions = sessions
        self._resolver = resolver
        self._hashes = MetadataHashes()
        self._compared: dict[str, tuple[Mapping[str, TopicImage], int]] = {}

    def apply(
        self, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember, owned: Owned, entries: list[Entry]
    ) -> ConsumerMember:
        """The member after its next step, once everything that follows from its change is decided."""
        if after != before:
            entries.append(metadata_entry(group.group_id, after))
        has_new_names = after.topic_names != before.topic_names
        regex = self._change_regex(group, before, after, entries)
        group_epoch = group.group_epoch
        found: Subscriptions | None = None
        affects_others = has_new_names or regex.affects_others
        if affects_others or self._is_outdated(group):
            found = with_member(group, before, after)
            group_epoch = self._next_epoch(group, found, affects_others=affects_others, entries=entries)
        target = self._target(group, group_epoch, before, after, found)
        entries.extend(target.entries)
        return self._step(group, after, target, owned, has_new_names or regex.is_updated, entries)

    def _change_regex(
        self, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember, entries: list[Entry]
    ) -> RegexChange:
        change = self._resolver.change(group, before, after)
        if change.is_updated and group.regexes.get(before.topic_regex) == 1:
            entries.append(regex_tombstone(group.group_id, before.topic_regex))
        self._resolver.look_up_if_due(group, before, after, change)
        return change

    # The group epoch

    def _is_outdated(self, group: ConsumerGroup) -> bool:
        """Whether topics changed since the group's hash was compared with them, or what followed was not written."""
        compared = self._compared.get(group.group_id)
        return compared is None or compared[0] is not self._context.image().topics or group.group_epoch < compared[1]

    def _next_epoch(
        self, group: ConsumerGroup, found: Subscriptions, *, affects_others: bool, entries: list[Entry]
    ) -> int:
        image = self._context.image()
        self._hashes.forget_gone(image)
        metadata_hash = self._hashes.of(found.topics, image)
        epoch = group.group_epoch
        if affects_others or metadata_hash != group.metadata_hash:
            epoch += 1
            self._context.counts.consumer_rebalances += 1
            entries.append(group_entry(group.group_id, epoch, metadata_hash))
        self._compared[group.group_id] = (image.topics, epoch)
        if group.has_partition_metadata:
            entries.append(Entry(ConsumerGroupPartitionMetadataKey(group_id=group.group_id)))
        return epoch

    def metadata_hash(self, group: ConsumerGroup) -> int:
        return self._hashes.of(subscriptions_of(group).topics, self._context.image())

    def forget(self, group_id: str) -> None:
        self._compared.pop(group_id, None)
        self._resolver.forget(group_id)

    # The target and the member

    def _target(
        self,
        group: ConsumerGroup,
        group_epoch: int,
        before: ConsumerMember,
        after: ConsumerMember,
        found: Subscriptions | None,
    ) -> Target:
        now_ms = self._context.clock.now_ms()
        settings = self._context.settings_of(group.group_id)
        interval_ms = settings.group_consumer_assignment_interval_ms
        if group.assignment_epoch >= group_epoch or not may_compute(group, interval_ms, now_ms):
            return last_target(group, after)
        subscriptions = found if found is not None else subscriptions_of(group)
        assignor = group.preferred_assignor(((before, -1), (after, 1))) or settings.group_consumer_assignors[0]
        return compute_target(
            group,
            group_epoch,
            after,
            assignor,
            self._context.image(),
            now_ms,
            is_homogeneous=subscriptions.is_homogeneous,
        )

    def _step(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        target: Target,
        owned: Owned,
        has_subscription_changed: bool,
        entries: list[Entry],
    ) -> ConsumerMember:
        if member.is_reconciled_to(target.epoch) and not has_subscription_changed:
            return member
        after = Reconciliation(
            target.epoch,
            target.assignment,
            topic_ids(group.topics_of(member), self._context.image()),
            has_subscription_changed,
            owned,
            group.owner_epoch,
        ).next_step(member)
        if after == member:
            return after
        entries.append(current_entry(group.group_id, after))
        if not after.uses_classic_protocol:
            if after.state is MemberState.UNREVOKED_PARTITIONS:
                self._sessions.revoking(group.group_id, after)
            else:
                self._sessions.not_revoking(group.group_id, after.member_id)
        return after

    # Members that go, expressions that are resolved

    def remove(self, group: ConsumerGroup, members: Collection[ConsumerMember]) -> list[Entry]:
        entries: list[Entry] = []
        for member in members:
            entries.extend(member_tombstones(group.group_id, member.member_id))
        found = without_members(group, members)
        unused = {member.topic_regex for member in members} - found.regexes.keys() - {""}
        entries.extend(regex_tombstone(group.group_id, regex) for regex in sorted(unused))
        metadata_hash = self._hashes.of(found.topics, self._context.image())
        entries.append(group_entry(group.group_id, group.group_epoch + 1, metadata_hash))
        for member in members:
            self._sessions.forget(group.group_id, member.member_id)
        return entries

    def resolve(self, group: ConsumerGroup, resolved: dict[str, ResolvedRegex]) -> list[Entry]:
        """Write what expressions stand for, with a new epoch if that changed. Those that nobody uses are left out."""
        used = {regex: resolved[regex] for regex in sorted(resolved) if regex in group.regexes}
        entries = [regex_entry(group.group_id, regex, one) for regex, one in used.items()]
        has_changed = any(
            one.topics != group.resolved.get(regex, ResolvedRegex()).topics or self._leaves_targets(group, regex, one)
            for regex, one in used.items()
        )
        found = with_resolved(group, used)
        self._next_epoch(group, found, affects_others=has_changed, entries=entries)
        return entries

    def _leaves_targets(self, group: ConsumerGroup, regex: str, resolved: ResolvedRegex) -> bool:
        """Whether a new expression stands for less than its members are to have: nobody would read the rest."""
        if regex in group.resolved:
            return False
        image = self._context.image()
        return any(
            not group.targets.get(member.member_id, {}).keys() <= topic_ids(member.topic_names | resolved.topics, image)
            for member in group.members.values()
            if member.topic_regex == regex
        )


def group_entry(group_id: str, epoch: int, metadata_hash: int) -> Entry:
    return Entry(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )
