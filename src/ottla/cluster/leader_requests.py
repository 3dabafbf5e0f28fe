"""Elections that somebody asks for: pure decisions on an image.

| election  | the partition                               | answer                                                    |
|-----------|---------------------------------------------|-----------------------------------------------------------|
| preferred | is led by the first of its replicas         | ELECTION_NOT_NEEDED                                       |
| preferred | its first replica is in sync and alive      | that one leads, under a new leader epoch                  |
| preferred | otherwise                                   | PREFERRED_LEADER_NOT_AVAILABLE                            |
| unclean   | has a leader                                | ELECTION_NOT_NEEDED                                       |
| unclean   | has a replica that is alive                 | it leads, one in sync if there is any, or records are lost |
| unclean   | otherwise                                   | ELIGIBLE_LEADERS_NOT_AVAILABLE                            |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ottla.cluster.elections import elect, elect_preferred, lost_replicas, standing_of, write_changed_state
from ottla.cluster.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.requests import Decision
from ottla.protocol.errors import ErrorCode, KafkaError


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class ElectionResult:
    """What became of the partitions of one topic, by index."""

    topic: str
    partitions: Mapping[int, KafkaError | None]


# The leader epochs of elections that one request has decided on, by topic id and partition.
Planned = dict[tuple[bytes, int], int]


def elect_leaders(
    image: ClusterImage,
    election: ElectionType,
    asked: Mapping[str, Sequence[int]] | None,
    planned: Planned,
    controller_epoch: int,
) -> list[Decision[ElectionResult]]:
    """One decision for each topic; None asks for all partitions.

    `planned` remembers what this request set out to do: a leader that is there under that epoch is its success.
    """
    if asked is None:
        asked = {topic.name: range(len(topic.partitions)) for topic in image.topics.values()}
    decisions: list[Decision[ElectionResult]] = []
    for name, indexes in asked.items():
        results: dict[int, KafkaError | None] = {}
        changes: dict[int, PartitionImage] = {}
        topic = image.topics.get(name)
        for index in indexes:
            try:
                results[index] = None
                elected = _elect_leader(image, election, name, index, planned)
                if elected is not None:
                    changes[index] = elected
            except KafkaError as error:
                results[index] = error
        operations = () if topic is None else tuple(write_changed_state(topic, changes, controller_epoch))
        decisions.append(Decision(ElectionResult(name, results), operations))
    return decisions


def _elect_leader(
    image: ClusterImage, election: ElectionType, name: str, index: int, planned: Planned
) -> PartitionImage | None:
    """The partition with its new leader; None when an earlier attempt has elected it."""
    topic = image.topics.get(name)
    partition = image.partition(name, index)
    if topic is None or partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{index}.")
    epoch = planned.get((topic.topic_id, index))
    if epoch is not None and partition.leader_epoch >= epoch and partition.leader != NO_LEADER:
        return None
    is_led = partition.leader == partition.replicas[0] if election == ElectionType.PREFERRED else _has_leader(partition)
    if is_led:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{name}-{index} is led by broker {partition.leader} already.")
    if election == ElectionType.PREFERRED:
        elected = elect_preferred(image, topic, index)
        if elected is None:
            message = f"Broker {partition.replicas[0]}, the preferred leader of {name}-{index}, cannot lead it."
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, message)
    else:
        elected = _elect_any(image, topic, partition)
    planned[topic.topic_id, index] = elected.leader_epoch
    return elected


def _has_leader(partition: PartitionImage) -> bool:
    return partition.leader != NO_LEADER


def _elect_any(image: ClusterImage, topic: TopicImage, partition: PartitionImage) -> PartitionImage:
    standing = standing_of(image).without(lost_replicas(image, topic, partition))
    elected = elect(partition, standing, is_unclean_allowed=True)
    if not _has_leader(elected):
        message = f"None of the brokers {list(partition.replicas)} can lead {topic.name}-{partition.index}."
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message)
    return elected
