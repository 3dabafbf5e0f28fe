"""Committed offsets: to the group's coordinator with OffsetCommit, and back with OffsetFetch.

| answer                                                       | what is done                                         |
|--------------------------------------------------------------|------------------------------------------------------|
| the coordinator moved, is loading, or nobody answered        | look it up again, ask again, until the time is over  |
| STALE_MEMBER_EPOCH                                           | ask again as the member of the new epoch             |
| UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS | CommitFailed; the membership is told                 |
| FENCED_INSTANCE_ID                                           | Fenced                                               |
| anything else                                                | the error of that code                               |
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.consumer.values import NO_OFFSET
from ottla.client.errors import (
    BrokerUnavailable,
    CommitFailed,
    InvalidAnswer,
    UnsupportedByBroker,
    error_of,
)
from ottla.client.membership.interface import NO_GENERATION, Generation, Membership
from ottla.client.network import CoordinatorKind, Network
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from ottla.runtime import Clock

_NO_TOPIC_ID = bytes(16)
_COMMIT_WITH_IDS = _FETCH_WITH_IDS = 10
_COORDINATOR_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_UNKNOWN_TOPIC = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_AGAIN = (
    _COORDINATOR_MOVED
    | _UNKNOWN_TOPIC
    | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNSTABLE_OFFSET_COMMIT}
)
_EPOCH_PASSED = frozenset({ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION})
_NOT_OURS = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS} | _EPOCH_PASSED)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Stored = Sequence[tuple[TopicPartition, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]]


class _Retry(NamedTuple):
    """What a question is asked again for: the code, and what it was about."""

    code: ErrorCode
    what: str


class OffsetStore:
    """The offsets of one group. `membership` is None for a consumer that assigns its partitions by itself."""

    def __init__(self, network: Network, clock: Clock, group_id: str, membership: Membership | None) -> None:
        self._network = network
        self._clock = clock
        self.group_id = group_id
        self.membership = membership
        self.commit_count = 0

    # Commit

    async def commit(
        self, offsets: Offsets, timeout_seconds: float, *, as_member: bool = True, skips_deleted: bool = False
    ) -> None:
        """Store these; they are all stored when it returns. With `as_member` off the group must have no members. With
        `skips_deleted`, those of topics that are no more are left out."""
        deadline = self._clock.monotonic() + timeout_seconds
        attempt = 0
        retry: _Retry | None = None
        while True:
            if skips_deleted:
                offsets = {one: offset for one, offset in offsets.items() if not self._is_deleted(one.topic, retry)}
            if not offsets:
                return
            generation = self._generation() if as_member else Generation()
            retry = await self._commit_once(offsets, generation, deadline)
            if retry is None:
                self.commit_count += 1
                return
            if retry.code in _EPOCH_PASSED:
                await self._wait_for_epoch(retry, generation, deadline)
                continue
            await self._back_off(retry, attempt, deadline, "the offsets were not committed")
            attempt += 1

    def _is_deleted(self, name: str, refused: _Retry | None) -> bool:
        """Whether the metadata says so; where it only lacks the topic, the coordinator has to have said the same."""
        if name in self._network.cluster.topics:
            return False
        if self._network.topic_error(name) in _UNKNOWN_TOPIC:
            return True
        return refused is not None and refused.code in _UNKNOWN_TOPIC and _split(refused.what)[0] == name

    def _generation(self) -> Generation:
        return Generation() if self.membership is None else self.membership.generation

    async def _commit_once(self, offsets: Offsets, generation: Generation, deadline: float) -> _Retry | None:
        request = self._commit_request(offsets, generation)
        try:
            node_id = await self._network.coordinator(CoordinatorKind.GROUP, self.group_id)
            response = await self._network.ask(
                node_id,
                request,
                OffsetCommitResponse,
                timeout_seconds=self._left(deadline),
                max_version=self._newest((partition.topic for partition in offsets), _COMMIT_WITH_IDS),
            )
        except (BrokerUnavailable, InvalidAnswer) as error:
            self._network.forget_coordinator(CoordinatorKind.GROUP, self.group_id)
            return _Retry(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
        for asked, topic in zip(request.topics, response.topics, strict=False):
            for one in topic.partitions:
                code = ErrorCode(one.error_code)
                if code is not ErrorCode.NONE:
                    # Topics are answered in their order, by id or by name.
                    name = topic.name or self._network.cluster.names_by_id.get(topic.topic_id, asked.name)
                    return self._commit_error(code, TopicPartition(name, one.partition_index), generation)
        return None

    def _commit_error(self, code: ErrorCode, partition: TopicPartition, generation: Generation) -> _Retry:
        """What to try again for, or what to raise."""
        if self.membership is not None and generation.is_member:
            self.membership.commit_refused(code, generation)
        if code in _COORDINATOR_MOVED:
            self._network.forget_coordinator(CoordinatorKind.GROUP, self.group_id)
        if code in _AGAIN:
            return _Retry(code, str(partition))
        if code in _EPOCH_PASSED and self.membership is not None and generation.is_member:
            return _Retry(code, str(partition))
        if code in _NOT_OURS:
            raise self._not_ours(code, partition)
        raise error_of(code, f"group {self.group_id!r}: the offset of {partition} was not committed: {code.name}")

    def _not_ours(self, code: ErrorCode, partition: TopicPartition) -> CommitFailed:
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            why = "a rebalance is going on: ask for records, so that it can end, and commit again"
        elif self.membership is None or not self.membership.generation.is_member:
            why = "the group has members of its own, and this consumer is none: subscribe, or use another group.id"
        else:
            why = "the group has a new generation, and the partitions may have another owner: go on reading"
        return CommitFailed(
            f"group {self.group_id!r}: the offset of {partition} was not committed ({code.name}), {why}"
        )

    async def _wait_for_epoch(self, retry: _Retry, generation: Generation, deadline: float) -> None:
        """Go on as the member of the next epoch, or raise CommitFailed where there is none."""
        membership = self.membership
        left = self._left(deadline)
        if membership is None or left <= 0 or retry.code is ErrorCode.ILLEGAL_GENERATION:
            raise self._not_ours(retry.code, TopicPartition(*_split(retry.what)))
        if await membership.wait_for_epoch(generation, left) == generation:
            raise self._not_ours(retry.code, TopicPartition(*_split(retry.what)))

    def _commit_request(self, offsets: Offsets, generation: Generation) -> OffsetCommitRequest:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, partition), committed in sorted(offsets.items()):
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = OffsetCommitRequestTopic(name=name, topic_id=self._topic_id(name), partitions=[])
            topic.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    committed_metadata=committed.metadata,
                )
            )
        return OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=generation.generation,
            member_id=generation.member_id,
            group_instance_id=generation.instance_id,
            topics=list(topics.values()),
        )

    # Fetch

    async def fetch(
        self, partitions: Sequence[TopicPartition], timeout_seconds: float, *, require_stable: bool = True
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What is committed, None where nothing is. Waits for transactions that commit offsets of the group."""
        if not partitions:
            return {}
        deadline = self._clock.monotonic() + timeout_seconds
        attempt = 0
        while True:
            found = await self._fetch_once(partitions, deadline, require_stable)
            if not isinstance(found, _Retry):
                return {partition: found.get(partition) for partition in partitions}
            await self._back_off(found, attempt, deadline, "the committed offsets are not known")
            attempt += 1

    async def _fetch_once(
        self, partitions: Sequence[TopicPartition], deadline: float, require_stable: bool
    ) -> dict[TopicPartition, OffsetAndMetadata] | _Retry:
        try:
            node_id = await self._network.coordinator(CoordinatorKind.GROUP, self.group_id)
            group_code, stored = await self._ask_offsets(node_id, partitions, deadline, require_stable)
        except (BrokerUnavailable, InvalidAnswer) as error:
            self._network.forget_coordinator(CoordinatorKind.GROUP, self.group_id)
            return _Retry(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        codes = [(group_code, f"group {self.group_id!r}")]
        codes += [(ErrorCode(one.error_code), str(partition)) for partition, one in stored]
        for code, what in codes:
            if code in _COORDINATOR_MOVED:
                self._network.forget_coordinator(CoordinatorKind.GROUP, self.group_id)
            if code in _AGAIN or code is ErrorCode.STALE_MEMBER_EPOCH:
                return _Retry(code, what)
            if code:
                raise error_of(code, f"the committed offset of {what} cannot be read: {code.name}")
        for partition, one in stored:
            if one.committed_offset != NO_OFFSET:
                found[partition] = OffsetAndMetadata(
                    one.committed_offset, one.metadata or "", one.committed_leader_epoch
                )
        return found

    async def _ask_offsets(
        self, node_id: int, partitions: Sequence[TopicPartition], deadline: float, require_stable: bool
    ) -> tuple[ErrorCode, Stored]:
        by_topic: dict[str, list[int]] = {}
        for name, partition in sorted(partitions):
            by_topic.setdefault(name, []).append(partition)
        generation = self._generation()
        group = OffsetFetchRequestGroup(
            group_id=self.group_id,
            member_id=generation.member_id if generation.is_member else None,
            member_epoch=generation.generation if generation.is_member else NO_GENERATION,
            topics=[
                OffsetFetchRequestTopics(name=name, topic_id=self._topic_id(name), partition_indexes=numbers)
                for name, numbers in by_topic.items()
            ],
        )
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
        left = self._left(deadline)
        try:
            response = await self._network.ask(
                node_id,
                request,
                OffsetFetchResponse,
                timeout_seconds=left,
                max_version=self._newest(by_topic, _FETCH_WITH_IDS),
            )
        except UnsupportedByBroker:
            # Before version 8 the group stands by itself, and before version 7 nothing waits for transactions.
            topics = [OffsetFetchRequestTopic(name=name, partition_indexes=n) for name, n in by_topic.items()]
            older = OffsetFetchRequest(group_id=self.group_id, topics=topics)
            response = await self._network.ask(node_id, older, OffsetFetchResponse, timeout_seconds=left)
            return ErrorCode(response.error_code), [
                (TopicPartition(topic.name, one.partition_index), one)
                for topic in response.topics
                for one in topic.partitions
            ]
        names = self._network.cluster.names_by_id
        answer = response.groups[0]
        return ErrorCode(answer.error_code), [
            (TopicPartition(topic.name or names.get(topic.topic_id, ""), one.partition_index), one)
            for topic in answer.topics
            for one in topic.partitions
        ]

    # Both

    def _topic_id(self, name: str) -> bytes:
        info = self._network.cluster.topics.get(name)
        return _NO_TOPIC_ID if info is None else info.topic_id

    def _newest(self, names: Iterable[str], with_ids: int) -> int | None:
        """The last version with names, where the id of a topic is not known; None for no limit."""
        return None if all(self._topic_id(name) != _NO_TOPIC_ID for name in names) else with_ids - 1

    def _left(self, deadline: float) -> float:
        return max(deadline - self._clock.monotonic(), 0.001)

    async def _back_off(self, retry: _Retry, attempt: int, deadline: float, what: str) -> None:
        if self._clock.monotonic() >= deadline:
            text = f"group {self.group_id!r}: {what} in time: {retry.code.name} ({retry.what})"
            if retry.code in _UNKNOWN_TOPIC:
                raise error_of(retry.code, text)
            raise BrokerUnavailable(text)
        if retry.code in _UNKNOWN_TOPIC:
            self._network.request_update()
        await self._network.backoff(attempt)


def _split(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("-")
    return name, int(number)
