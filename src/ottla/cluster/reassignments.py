"""Moves of partitions between brokers: pure decisions on an image.

A reassignment names the replicas that a partition should have, or none to call a move off. Replicas do not move
between brokers yet, so no move is ever under way: the assignment that a partition has is accepted and changes nothing,
one that cannot be is refused as Kafka does, and any other is refused until replicas can follow it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.cluster.image import ClusterImage
from ottla.cluster.requests import Decision
from ottla.cluster.topics import check_replicas
from ottla.protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Reassignment:
    """`replicas` is None to call a move off."""

    topic: str
    index: int
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ReassignmentResult:
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def alter_reassignments(
    image: ClusterImage, requests: Sequence[Reassignment], may_change_replication_factor: bool
) -> list[Decision[ReassignmentResult]]:
    """One decision for each request, in order."""
    decisions: list[Decision[ReassignmentResult]] = []
    for request in requests:
        try:
            _alter_reassignment(image, request, may_change_replication_factor)
            decisions.append(Decision(ReassignmentResult()))
        except KafkaError as error:
            decisions.append(Decision(ReassignmentResult(error.code, error.message or None)))
    return decisions


def _alter_reassignment(image: ClusterImage, request: Reassignment, may_change_replication_factor: bool) -> None:
    name = f"{request.topic}-{request.index}"
    partition = image.partition(request.topic, request.index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}.")
    if request.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"No move of {name} is under way.")
    check_replicas(image, request.replicas, None)
    if len(request.replicas) != len(partition.replicas) and not may_change_replication_factor:
        message = (
            f"{name} has {len(partition.replicas)} replica(s), and {len(request.replicas)} would change that number."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if request.replicas != partition.replicas:
        message = f"Replicas do not move between brokers yet: {name} stays on {list(partition.replicas)}."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
