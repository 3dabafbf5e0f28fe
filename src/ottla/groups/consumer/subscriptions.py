"""What a group reads once a member has changed: the topics, and whether all members read the same."""

from collections.abc import Collection, Set
from dataclasses import dataclass

from ottla.groups.consumer.group import ConsumerGroup, Counter, ResolvedRegex
from ottla.groups.consumer.member import ConsumerMember


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Like the counts of a group, of which they are a changed copy."""

    by_name: Counter
    by_regex: Counter
    regexes: Counter
    member_count: int

    @property
    def topics(self) -> Set[str]:
        return self.by_name.keys() | self.by_regex.keys()

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members read the same topics, as far as counting tells; False is always a safe answer."""
        if not self.regexes:
            return all(count == self.member_count for count in self.by_name.values())
        if self.by_name or next(iter(self.regexes.values())) != self.member_count:
            return False
        return all(count == 1 for count in self.by_regex.values())


def subscriptions_of(group: ConsumerGroup) -> Subscriptions:
    return Subscriptions(Counter(group.by_name), Counter(group.by_regex), Counter(group.regexes), len(group.members))


def with_member(group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> Subscriptions:
    """As they are when a member has changed, or has come: `before` is then one without subscriptions."""
    found = subscriptions_of(group)
    _change(found, group, before, -1)
    _change(found, group, after, 1)
    is_new = after.member_id not in group.members and group.static_member(after.instance_id) is None
    _forget_unused(found, group, {before.topic_regex})
    return Subscriptions(found.by_name, found.by_regex, found.regexes, found.member_count + is_new)


def without_members(group: ConsumerGroup, gone: Collection[ConsumerMember]) -> Subscriptions:
    found = subscriptions_of(group)
    for member in gone:
        _change(found, group, member, -1)
    _forget_unused(found, group, {member.topic_regex for member in gone})
    return Subscriptions(found.by_name, found.by_regex, found.regexes, found.member_count - len(gone))


def with_resolved(group: ConsumerGroup, resolved: dict[str, ResolvedRegex]) -> Subscriptions:
    found = subscriptions_of(group)
    for regex, after in resolved.items():
        before = group.resolved.get(regex, ResolvedRegex())
        for name in before.topics:
            found.by_regex.change(name, -1)
        for name in after.topics:
            found.by_regex.change(name, 1)
    return found


def _change(found: Subscriptions, group: ConsumerGroup, member: ConsumerMember, by: int) -> None:
    for name in member.topic_names:
        found.by_name.change(name, by)
    if member.topic_regex:
        found.regexes.change(member.topic_regex, by)


def _forget_unused(found: Subscriptions, group: ConsumerGroup, regexes: Set[str]) -> None:
    """An expression that nobody uses any more does not stand for topics any more."""
    for regex in regexes:
        if regex and regex not in found.regexes:
            for name in group.resolved.get(regex, ResolvedRegex()).topics:
                found.by_regex.change(name, -1)
