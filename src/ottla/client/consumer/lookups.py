"""Questions about offsets: what a time stands for (ListOffsets), and where a leader epoch ends (OffsetForLeaderEpoch).

Both go to the leaders of partitions. A question is asked again for the partitions whose leader turned out to be
another, until all are answered or the time is over.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.cluster import NO_LEADER, Cluster
from ottla.client.consumer.positions import PartitionState, Position
from ottla.client.consumer.settings import ResetPolicy
from ottla.client.consumer.values import NO_EPOCH, NO_OFFSET
from ottla.client.errors import BrokerUnavailable, InvalidAnswer, LogTruncated, OttlaError, error_of
from ottla.client.network import Network
from ottla.client.types import OffsetAndTimestamp, TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.runtime import Clock

_CONSUMER = -1

# The partition has no leader, another one, or one that has not caught up yet.
_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class Found(NamedTuple):
    """What a time stands for; an offset of NO_OFFSET means that no record is that young."""

    offset: int
    timestamp: int
    leader_epoch: int


class OffsetLookup:
    """ListOffsets to whoever leads the partitions."""

    def __init__(self, network: Network, clock: Clock, *, is_read_committed: bool) -> None:
        self._network = network
        self._clock = clock
        self._isolation_level = 1 if is_read_committed else 0

    async def find(self, times: Mapping[TopicPartition, int], timeout_seconds: float) -> dict[TopicPartition, Found]:
        """The offsets for times or OffsetSpecs, all of them; BrokerUnavailable when some are not known in time."""
        deadline = self._clock.monotonic() + timeout_seconds
        found: dict[TopicPartition, Found] = {}
        reason = "no leader is known"
        attempt = 0
        while missing := {partition: time for partition, time in times.items() if partition not in found}:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                names = ", ".join(map(str, sorted(missing)))
                raise BrokerUnavailable(f"no offsets within {timeout_seconds:g} s for {names}: {reason}")
            by_node = grouped(self._network.cluster, missing)
            for node_id in sorted(by_node):
                asked = {partition: missing[partition] for partition in by_node[node_id]}
                try:
                    answers, moved = await self.ask(node_id, asked, left)
                except (BrokerUnavailable, InvalidAnswer) as error:
                    reason = str(error)
                    self._network.request_update()
                else:
                    found.update(answers)
                    reason = f"the brokers answered {moved}" if moved else reason
            if len(found) < len(times):
                await self._wait(missing, attempt, deadline)
                attempt += 1
        return found

    async def _wait(self, missing: Mapping[TopicPartition, int], attempt: int, deadline: float) -> None:
        """Let the metadata catch up; raise what the brokers say about the topics themselves."""
        self._network.request_update()
        await self._network.backoff(attempt)
        if deadline - self._clock.monotonic() > 0:
            return
        for partition in sorted(missing):
            code = self._network.topic_error(partition.topic)
            if code:
                raise error_of(code, f"topic {partition.topic!r}: {ErrorCode(code).name}")

    async def ask(
        self, node_id: int, times: Mapping[TopicPartition, int], timeout_seconds: float | None = None
    ) -> tuple[dict[TopicPartition, Found], str]:
        """One question to one broker: what it answered, and the error of those that it could not answer for now."""
        topics: dict[str, ListOffsetsTopic] = {}
        for (name, partition), time in times.items():
            info = self._network.cluster.partition(name, partition)
            topics.setdefault(name, ListOffsetsTopic(name=name, partitions=[])).partitions.append(
                ListOffsetsPartition(
                    partition_index=partition,
                    current_leader_epoch=NO_EPOCH if info is None else info.leader_epoch,
                    timestamp=time,
                )
            )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=self._isolation_level,
            topics=list(topics.values()),
            timeout_ms=int((timeout_seconds or 30.0) * 1000),
        )
        response = await self._network.ask_beside(node_id, request, ListOffsetsResponse)
        found: dict[TopicPartition, Found] = {}
        moved = ""
        for topic in response.topics:
            for one in topic.partitions:
                partition_of = TopicPartition(topic.name, one.partition_index)
                code = ErrorCode(one.error_code)
                if code in _MOVED:
                    moved = code.name
                elif code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                    found[partition_of] = Found(NO_OFFSET, -1, NO_EPOCH)
                elif code:
                    raise error_of(code, f"offsets of {partition_of} cannot be asked for: {code.name}")
                else:
                    found[partition_of] = Found(one.offset, one.timestamp, one.leader_epoch)
        return found, moved

    async def for_times(
        self, times: Mapping[TopicPartition, int], timeout_seconds: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        found = await self.find(times, timeout_seconds)
        return {
            partition: None
            if found[partition].offset == NO_OFFSET
            else OffsetAndTimestamp(found[partition].offset, found[partition].timestamp, found[partition].leader_epoch)
            for partition in times
        }


def grouped(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Partitions by leader, without those that have none."""
    by_node: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        leader = cluster.leader_of(*partition)
        if leader != NO_LEADER:
            by_node.setdefault(leader, []).append(partition)
    return by_node


# Truncation


async def ask_epochs(
    network: Network, node_id: int, states: Iterable[PartitionState]
) -> dict[TopicPartition, EpochEndOffset]:
    """Where the epochs of what was fetched last end, by the leader's log."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for state in states:
        topics.setdefault(state.topic, OffsetForLeaderTopic(topic=state.topic, partitions=[])).partitions.append(
            OffsetForLeaderPartition(
                partition=state.partition, current_leader_epoch=state.leader_epoch, leader_epoch=state.fetch_epoch
            )
        )
    request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
    response = await network.ask_beside(node_id, request, OffsetForLeaderEpochResponse)
    return {TopicPartition(topic.topic, one.partition): one for topic in response.topics for one in topic.partitions}


class Verdict(NamedTuple):
    """What follows from a leader's answer about a partition's epoch."""

    is_valid: bool = False
    is_retried: bool = False
    drop_buffered: bool = False
    go_to: Position | None = None
    is_reset: bool = False
    error: OttlaError | None = None


def judge(state: PartitionState, answer: EpochEndOffset, policy: ResetPolicy) -> Verdict:
    """What was fetched last is still in the log, or the log was cut below it.

    What is buffered and not handed out yet is given up first, and what was handed out is asked about then. Below that
    only `auto.offset.reset` can decide: with one, reading goes on where the logs parted.
    """
    code = ErrorCode(answer.error_code)
    if code in _MOVED:
        return Verdict(is_retried=True)
    if code:
        return Verdict(error=error_of(code, f"{state.topic_partition} cannot be validated: {code.name}"))
    is_unknown = answer.end_offset == NO_OFFSET or answer.leader_epoch == NO_EPOCH
    if not is_unknown and answer.end_offset >= state.fetch_offset:
        return Verdict(is_valid=True)
    if state.next_offset < state.fetch_offset:
        return Verdict(drop_buffered=True)
    if policy.is_none:
        where = "nowhere below it" if is_unknown else f"up to offset {answer.end_offset}"
        return Verdict(
            error=LogTruncated(
                f"{state.topic_partition} was truncated below offset {state.fetch_offset}, which was read already; the "
                f"new leader has the same records {where}. auto.offset.reset is none: seek to go on"
            )
        )
    if is_unknown:
        return Verdict(is_reset=True)
    return Verdict(go_to=Position(answer.end_offset, answer.leader_epoch))
