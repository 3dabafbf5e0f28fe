"""A consumer group as ConsumerGroupDescribe tells of it.

What a member has includes what it has yet to give back; topics that are no more are left out.
"""

from collections.abc import Iterable, Mapping

from ottla.cluster.image import ClusterImage
from ottla.groups.consumer.assignors import topic_order
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember
from ottla.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe_group(group: ConsumerGroup, default_assignor: str, image: ClusterImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[_describe(group, group.members[member_id], image) for member_id in sorted(group.members)],
    )


def _describe(group: ConsumerGroup, member: ConsumerMember, image: ClusterImage) -> Member:
    has: dict[bytes, set[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, given in partitions.items():
            has.setdefault(topic_id, set()).update(given)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(has, image),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), image),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], image: ClusterImage) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id,
                topic_name=image.topics_by_id[topic_id].name,
                partitions=sorted(partitions[topic_id]),
            )
            for topic_id in sorted(partitions, key=topic_order)
            if topic_id in image.topics_by_id
        ]
    )
