"""Who leads: pure decisions when brokers come and go.

A controller must notice a broker that died and came back even if no controller ran in between, because such a broker
may have lost the end of its logs. So the store holds the broker epochs that a controller has dealt with
(`/brokers/admitted`). Compared with the brokers registered now, a broker is one of

| registered | admitted        | it                                                                     |
|------------|-----------------|------------------------------------------------------------------------|
| yes        | same epoch      | stayed: keeps its leaderships and its place in the ISRs                |
| yes        | another or none | returned: leaves the ISRs it can leave, may lead where no one else can |
| no         | any or none     | is gone: leaves the ISRs, leads nothing                                |

A broker that shuts down is treated as gone where another member of the ISR can lead, and otherwise left as it is: it
leads until it is really gone. One that shuts down before it was admitted never came.

A broker whose replica of a partition is offline, since its log directory failed, counts as gone there.

The rules for one partition:

1. Members of the ISR that stayed are the new ISR. When none stayed, those that returned are: whichever of them leads,
   it has what was committed, as far as the disks kept it.
2. The leader stays if it stayed and is in the ISR; otherwise the first replica, in order of preference, that is in
   the new ISR leads, under a new leader epoch. A leader that returned gets a new epoch too, even with no one else.
3. When no member of the ISR is alive, there is no leader and the ISR is kept, unless the topic allows unclean
   election: then the first replica that is alive leads alone, and records may be lost.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ottla.cluster import paths, registry
from ottla.cluster.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.requests import ControllerSettings
from ottla.coordination.store import Set

UNCLEAN_CONFIG = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class Standing:
    """Brokers by what became of them: `stayed` and `returned` are alive, `leaving` are alive and shut down."""

    stayed: AbstractSet[int]
    returned: AbstractSet[int] = frozenset()
    leaving: AbstractSet[int] = frozenset()

    def without(self, gone: AbstractSet[int]) -> "Standing":
        return Standing(self.stayed - gone, self.returned - gone, self.leaving - gone) if gone else self


def standing_of(image: ClusterImage) -> Standing:
    stayed: set[int] = set()
    returned: set[int] = set()
    leaving: set[int] = set()
    for node_id, registration in image.brokers.items():
        is_admitted = registration.epoch == image.admitted.get(node_id)
        if not registration.is_shutting_down:
            (stayed if is_admitted else returned).add(node_id)
        elif is_admitted:
            leaving.add(node_id)
    return Standing(frozenset(stayed), frozenset(returned), frozenset(leaving))


def admitted_after(image: ClusterImage) -> dict[int, int]:
    """What `/brokers/admitted` must say once all partitions have been dealt with."""
    return {node_id: registration.epoch for node_id, registration in image.brokers.items()}


def elect(partition: PartitionImage, standing: Standing, is_unclean_allowed: bool) -> PartitionImage:
    """The partition after the brokers' comings and goings; the same object when nothing changes."""
    isr = tuple(replica for replica in partition.isr if replica in standing.stayed)
    if not isr and partition.leader in standing.leaving:
        isr = tuple(replica for replica in partition.isr if replica in standing.leaving)
        return _changed(partition, partition.leader, isr, must_bump=False)
    if not isr:
        isr = tuple(replica for replica in partition.isr if replica in standing.returned)
    if isr:
        if partition.leader in isr:
            return _changed(partition, partition.leader, isr, must_bump=partition.leader in standing.returned)
        leader = next(replica for replica in partition.replicas if replica in isr)
        return _changed(partition, leader, isr, must_bump=True)
    if is_unclean_allowed:
        for replica in partition.replicas:
            if replica in standing.stayed or replica in standing.returned:
                return _changed(partition, replica, (replica,), must_bump=True)
    return _changed(partition, NO_LEADER, partition.isr, must_bump=partition.leader != NO_LEADER)


def _changed(partition: PartitionImage, leader: int, isr: tuple[int, ...], *, must_bump: bool) -> PartitionImage:
    if not must_bump and leader == partition.leader and isr == partition.isr:
        return partition
    return PartitionImage(
        index=partition.index,
        leader=leader,
        leader_epoch=partition.leader_epoch + must_bump,
        replicas=partition.replicas,
        isr=isr,
        partition_epoch=partition.partition_epoch + 1,
        offline_replicas=partition.offline_replicas,
    )


def lost_replicas(image: ClusterImage, topic: TopicImage, partition: PartitionImage) -> frozenset[int]:
    """Brokers that are alive and cannot use their replica of this partition."""
    return frozenset(
        replica
        for replica in partition.replicas
        if replica in image.brokers and image.brokers[replica].has_offline(topic.topic_id, partition.index)
    )


def elect_all(image: ClusterImage, settings: ControllerSettings, controller_epoch: int) -> Iterator[Set]:
    """The chunks of partition state to write after brokers came or went; none when all is as it should be."""
    standing = standing_of(image)
    for topic in image.topics.values():
        is_unclean_allowed = allows_unclean_election(topic, image, settings)
        yield from write_changed_state(
            topic,
            {
                partition.index: elected
                for partition in topic.partitions
                if (
                    elected := elect(
                        partition, standing.without(lost_replicas(image, topic, partition)), is_unclean_allowed
                    )
                )
                is not partition
            },
            controller_epoch,
        )


def elect_preferred(image: ClusterImage, topic: TopicImage, index: int) -> PartitionImage | None:
    """The partition led by its preferred replica; None when that one cannot lead or leads already."""
    partition = topic.partitions[index]
    preferred = partition.replicas[0]
    if preferred == partition.leader or preferred not in partition.isr:
        return None
    registration = image.brokers.get(preferred)
    if registration is None or not registration.is_active or registration.has_offline(topic.topic_id, index):
        return None
    return _changed(partition, preferred, partition.isr, must_bump=True)


def write_changed_state(
    topic: TopicImage, changes: Mapping[int, PartitionImage], controller_epoch: int
) -> Iterator[Set]:
    """One write for each chunk that has a change, if the chunk is still as it was read."""
    for chunk in sorted({index // paths.PARTITIONS_PER_CHUNK for index in changes}):
        first = chunk * paths.PARTITIONS_PER_CHUNK
        partitions = tuple(
            changes.get(partition.index, partition)
            for partition in topic.partitions[first : first + paths.PARTITIONS_PER_CHUNK]
        )
        data = registry.encode_state(topic.topic_id, controller_epoch, partitions)
        yield Set(paths.topic_state(topic.name, chunk), data, topic.state_versions[chunk])


def allows_unclean_election(topic: TopicImage, image: ClusterImage, settings: ControllerSettings) -> bool:
    value = topic.configs.get(UNCLEAN_CONFIG, image.configs.defaults.get(UNCLEAN_CONFIG))
    return settings.unclean_leader_election_enable if value is None else value.lower() == "true"
