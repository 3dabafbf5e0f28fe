"""Partitions: more of them, their leaders, and their moves between brokers."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ottla.client.admin.base import AdminPart, Progress, tell
from ottla.client.admin.call import Call, Outcomes, as_partitions, by_topic
from ottla.client.admin.failures import failure
from ottla.client.admin.heard import until_known
from ottla.client.admin.results import Results
from ottla.client.errors import OttlaError
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ottla.protocol.messages.elect_leaders import TopicPartitions as ElectedTopic
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


class Election(IntEnum):
    """`PREFERRED` makes the first replica lead; `UNCLEAN` any that is there, at the price of records."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The number of partitions that a topic is to have, and, if wanted, the brokers of each new one."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move that is under way: `adding` catch up, `removing` go when they have."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionsAdmin(AdminPart):
    async def create_partitions(
        self,
        topics: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Give topics more partitions: `{"orders": 12}` makes it 12 in all. Records stay where they are, so keys may
        go to another partition from then on.

        With `wait`, brokers know the new partitions and their leaders when this returns.
        """
        wanted = {
            name: total if isinstance(total, NewPartitions) else NewPartitions(total) for name, total in topics.items()
        }
        call = self._call(timeout)

        async def ask(names: Sequence[str]) -> Outcomes[str, None]:
            request = CreatePartitionsRequest(
                topics=[_more_partitions(name, wanted[name]) for name in names],
                timeout_ms=call.attempt_ms(),
                validate_only=validate_only,
            )
            answer = await call.to_controller(request, CreatePartitionsResponse)
            return {
                topic.name: failure(topic.error_code, topic.error_message, topic.name) if topic.error_code else None
                for topic in answer.results
            }

        results = await call.settle(wanted, lambda names: call.in_pieces(names, ask))
        if wait and not validate_only:
            await until_known(call, {name: wanted[name].total for name in results.succeeded})
        return results

    async def elect_leaders(
        self,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        election: Election = Election.PREFERRED,
        timeout: float | None = None,
    ) -> Results[TopicPartition, None]:
        """Elect leaders, of all partitions where none are named. Where the leader is already the right one, the result
        is the error ELECTION_NOT_NEEDED; all partitions at once leave those out."""
        call = self._call(timeout)
        if partitions is not None:
            ask = functools.partial(_elect, call, election)
            return await call.settle(as_partitions(partitions), lambda keys: call.in_pieces(keys, ask))
        return Results(await call.ask_until_answered(lambda: _elect(call, election, None)))

    async def list_reassignments(
        self, partitions: Iterable[tuple[str, int]] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The moves that are under way, of all partitions where none are named."""
        call = self._call(timeout)
        wanted = None if partitions is None else as_partitions(partitions)
        return await call.ask_until_answered(lambda: _moves(call, wanted))

    async def alter_reassignments(
        self,
        targets: Mapping[tuple[str, int], Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        wait: bool = False,
        progress: Progress | None = None,
        timeout: float | None = None,
    ) -> Results[TopicPartition, None]:
        """Move partitions to these brokers, the preferred leader first; None calls a move off.

        With `wait`, this returns when the replicas are where they should be, or the time is over; `progress` is called
        with the number of partitions that have arrived.
        """
        wanted = {TopicPartition(*partition): replicas for partition, replicas in targets.items()}
        call = self._call(timeout)

        async def ask(keys: Sequence[TopicPartition]) -> Outcomes[TopicPartition, None]:
            return await _move(call, {key: wanted[key] for key in keys}, allow_replication_factor_change)

        results = await call.settle(wanted, lambda keys: call.in_pieces(keys, ask))
        if not wait:
            return results
        late = await _until_moved(call, list(results.succeeded), progress)
        return Results({key: results.errors.get(key) or late.get(key) for key in results})


def _more_partitions(name: str, new: NewPartitions) -> CreatePartitionsTopic:
    assignments = None
    if new.assignments is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in new.assignments]
    return CreatePartitionsTopic(name=name, count=new.total, assignments=assignments)


async def _elect(
    call: Call, election: Election, partitions: Sequence[TopicPartition] | None
) -> dict[TopicPartition, OttlaError | None]:
    topics = None
    if partitions is not None:
        topics = [ElectedTopic(topic=topic, partitions=numbers) for topic, numbers in by_topic(partitions).items()]
    request = ElectLeadersRequest(election_type=election, topic_partitions=topics, timeout_ms=call.attempt_ms())
    answer = await call.to_controller(request, ElectLeadersResponse)
    if answer.error_code:
        raise failure(answer.error_code, None, "the election of leaders")
    outcomes: dict[TopicPartition, OttlaError | None] = {}
    for topic in answer.replica_election_results:
        for result in topic.partition_result:
            key = TopicPartition(topic.topic, result.partition_id)
            outcomes[key] = failure(result.error_code, result.error_message, key) if result.error_code else None
    return outcomes


async def _moves(call: Call, partitions: Sequence[TopicPartition] | None) -> dict[TopicPartition, Reassignment]:
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
            for name, numbers in by_topic(partitions).items()
        ]
    request = ListPartitionReassignmentsRequest(timeout_ms=call.attempt_ms(), topics=topics)
    answer = await call.to_controller(request, ListPartitionReassignmentsResponse)
    if answer.error_code:
        raise failure(answer.error_code, answer.error_message, "the list of moves")
    return {
        TopicPartition(topic.name, move.partition_index): Reassignment(
            tuple(move.replicas), tuple(move.adding_replicas), tuple(move.removing_replicas)
        )
        for topic in answer.topics
        for move in topic.partitions
    }


async def _move(
    call: Call, targets: Mapping[TopicPartition, Sequence[int] | None], allow_replication_factor_change: bool
) -> dict[TopicPartition, OttlaError | None]:
    topics: dict[str, list[ReassignablePartition]] = {}
    for (topic, number), replicas in targets.items():
        wanted = None if replicas is None else list(replicas)
        topics.setdefault(topic, []).append(ReassignablePartition(partition_index=number, replicas=wanted))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=call.attempt_ms(),
        allow_replication_factor_change=allow_replication_factor_change,
        topics=[ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
    answer = await call.to_controller(request, AlterPartitionReassignmentsResponse)
    if answer.error_code:
        raise failure(answer.error_code, answer.error_message, "the moves")
    return {
        TopicPartition(topic.name, result.partition_index): failure(
            result.error_code, result.error_message, f"{topic.name}-{result.partition_index}"
        )
        if result.error_code
        else None
        for topic in answer.responses
        for result in topic.partitions
    }


async def _until_moved(
    call: Call, partitions: Sequence[TopicPartition], progress: Progress | None
) -> dict[TopicPartition, OttlaError]:
    """Wait for the moves; the error of those that are still under way when the time is over."""
    left = list(partitions)
    told = -1
    attempts = 0
    while left and call.remaining_seconds():
        under_way = await call.ask_until_answered(functools.partial(_moves, call, left))
        left = [partition for partition in left if partition in under_way]
        if len(left) != told:
            told = len(left)
            tell(progress, len(partitions) - len(left), len(partitions))
        if left:
            await call.network.backoff(attempts)
            attempts += 1
    return {
        partition: failure(ErrorCode.REQUEST_TIMED_OUT, "the move is still under way", partition) for partition in left
    }
