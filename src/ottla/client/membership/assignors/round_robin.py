"""`roundrobin`: all partitions of all topics in their order, dealt to the members in theirs."""

from collections.abc import Mapping
from itertools import cycle

from ottla.client.membership.assignors.model import Assignor, GroupView, MemberAssignment
from ottla.client.types import TopicPartition


class RoundRobinAssignor(Assignor):
    name = "roundrobin"

    def assign(self, group: GroupView) -> Mapping[str, MemberAssignment]:
        given: dict[str, list[TopicPartition]] = {member: [] for member in group.members}
        subscribed = {topic for member in group.members.values() for topic in member.topics}
        turns = cycle(group.members_in_order())
        for topic in (topic for topic in group.topics if topic in subscribed):
            for partition in group.partitions_of(topic):
                while topic not in group.members[member := next(turns)].topics:
                    pass
                given[member].append(partition)
        return {member: MemberAssignment(partitions) for member, partitions in given.items()}
