"""Neighbouring partitions of each topic for each of its subscribers, in the order of their instance ids or member ids.

The first subscribers get one more where it does not come out even. So members with the same subscriptions have
partitions of the same numbers in all topics of the same size: records with the same key meet in one member.
"""

from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec, MemberSpec, topic_order


def assign_ranges(spec: GroupSpec) -> dict[str, Assignment]:
    members = sorted(spec.members, key=_order)
    subscriber_counts: dict[bytes, int] = {}
    for member in members:
        for topic_id in member.topic_ids:
            subscriber_counts[topic_id] = subscriber_counts.get(topic_id, 0) + 1
    next_subscriber = dict.fromkeys(subscriber_counts, 0)
    result: dict[str, Assignment] = {}
    for member in members:
        assigned: dict[bytes, frozenset[int]] = {}
        for topic_id in sorted(member.topic_ids, key=topic_order):
            number = next_subscriber[topic_id]
            next_subscriber[topic_id] = number + 1
            share, rest = divmod(spec.partition_counts[topic_id], subscriber_counts[topic_id])
            first = number * share + min(number, rest)
            last = first + share + (1 if number < rest else 0)
            if first < last:
                assigned[topic_id] = frozenset(range(first, last))
        result[member.member_id] = assigned
    return result


def _order(member: MemberSpec) -> tuple[bool, str]:
    """Static members come first, so that who comes back under a new member id keeps its place."""
    if member.instance_id is not None:
        return False, member.instance_id
    return True, member.member_id
