"""Who reads which partitions, decided by the broker: pure functions of subscriptions and the last assignment.

    uniform  as many partitions for each member as for every other, moving as few as possible
    range    neighbouring partitions of each topic, the same for topics of the same size; does not care who had them

Members are looked at in the order of their ids and topics in the order of Kafka's: the results are those of Kafka's own
assignors, as far as they do not depend on the order of Java's hash tables.
"""

from collections.abc import Callable, Mapping

from ottla.groups.consumer.assignors.range_assignor import assign_ranges
from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec, MemberSpec, topic_order
from ottla.groups.consumer.assignors.uniform import assign_uniformly

Assignor = Callable[[GroupSpec], dict[str, Assignment]]

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "GroupSpec", "MemberSpec", "topic_order"]
