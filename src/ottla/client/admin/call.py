"""One call of a user: which brokers to ask, what to ask again, and until when.

A call is about a number of keys (topics, partitions, groups ...). An attempt asks for all that are still open and gives
each an outcome: a value or an error. What failed because the wrong broker was asked, or nobody answered, stays open and
is asked again after a pause, with the brokers looked up anew, until the time of the call is over; then the last error
stands. Nothing is ever asked again that was answered well.

| who must answer       | `settle` with an attempt made of                                             |
|-----------------------|------------------------------------------------------------------------------|
| the controller        | `to_controller`                                                              |
| partition leaders     | `by_leader`                                                                  |
| coordinators          | `by_coordinator`                                                             |
| each broker           | `by_broker`                                                                  |
| any broker            | `to_any`                                                                     |
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results, merged
from ottla.client.cluster import NO_LEADER
from ottla.client.errors import BrokerError, BrokerUnavailable, InvalidAnswer, OttlaError
from ottla.client.network import CoordinatorKind, Network
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

Answer = TypeVar("Answer", bound=Response)
Key = TypeVar("Key")
Value = TypeVar("Value")
Item = TypeVar("Item")

Outcomes = Mapping[Key, Value | OttlaError]

MAX_KEYS_PER_REQUEST = 1000
LOOKUPS_AT_ONCE = 32
PATIENT_ATTEMPTS = 4

MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
ASKED_AGAIN = MOVED | {
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
# A broker may hear of a new topic a moment after the controller made it; a misspelt one should not take a minute.
ASKED_AGAIN_A_FEW_TIMES = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.KAFKA_STORAGE_ERROR}
)


class TimeIsOver(BrokerUnavailable):
    """There was no time left to ask anybody."""


class Call:
    def __init__(self, network: Network, timeout_seconds: float, request_timeout_seconds: float) -> None:
        self.network = network
        self._request_timeout_seconds = request_timeout_seconds
        self._ends_at = asyncio.get_running_loop().time() + timeout_seconds

    def remaining_seconds(self) -> float:
        return max(self._ends_at - asyncio.get_running_loop().time(), 0.0)

    def attempt_seconds(self) -> float:
        """How long one request may take; raises when the time of the call is over."""
        remaining = self.remaining_seconds()
        if not remaining:
            raise TimeIsOver(
                "the time of the call is over before a broker could answer: give it more (timeout, or "
                "default.api.timeout.ms)"
            )
        return min(remaining, self._request_timeout_seconds)

    def attempt_ms(self) -> int:
        """The same, as the requests carry it."""
        return max(int(self.attempt_seconds() * 1000), 1)

    # One request.

    async def to_controller(self, request: Request, answer: type[Answer]) -> Answer:
        return await self.network.ask_controller(request, answer, timeout_seconds=self.attempt_seconds())

    async def to_any(self, request: Request, answer: type[Answer]) -> Answer:
        return await self.network.ask_any(request, answer, timeout_seconds=self.attempt_seconds())

    async def to(self, node_id: int, request: Request, answer: type[Answer], max_version: int | None = None) -> Answer:
        return await self.network.ask(
            node_id, request, answer, timeout_seconds=self.attempt_seconds(), max_version=max_version
        )

    # Attempts until all is settled.

    async def settle(
        self,
        keys: Iterable[Key],
        attempt: Callable[[Sequence[Key]], Awaitable[Outcomes[Key, Value]]],
        *,
        also_again: frozenset[ErrorCode] = frozenset(),
        is_patient: bool = False,
    ) -> Results[Key, Value]:
        """One outcome for each key. `also_again` are more codes that this API calls temporary; a patient call
        also asks a few times for what a broker does not know (yet)."""
        order = list(dict.fromkeys(keys))
        outcomes: dict[Key, Value | OttlaError] = {}
        waiting: Sequence[Key] = order
        attempts = 0
        while waiting:
            answered = await self._guarded(waiting, attempt)
            for key in waiting:
                outcome = answered[key] if key in answered else _silence(key)
                # Why it was asked again says more than that there was no time to.
                if not isinstance(outcome, TimeIsOver) or key not in outcomes:
                    outcomes[key] = outcome
            attempts += 1
            is_early = attempts < PATIENT_ATTEMPTS
            again = also_again | ASKED_AGAIN_A_FEW_TIMES if is_patient and is_early else also_again
            waiting = [key for key in waiting if _is_asked_again(outcomes[key], again, is_early)]
            if waiting and not await self._pause(attempts):
                break
        return Results({key: outcomes[key] for key in order})

    async def ask_until_answered(
        self, ask: Callable[[], Awaitable[Value]], *, also_again: frozenset[ErrorCode] = frozenset()
    ) -> Value:
        """For what is not about single things: the value, or the error raised."""

        async def attempt(keys: Sequence[None]) -> Outcomes[None, Value]:
            return {None: await ask()}

        return (await self.settle([None], attempt, also_again=also_again))[None]

    async def _pause(self, attempts: int) -> bool:
        """Wait before the next attempt; False when there is no time for one."""
        self.network.request_update()
        try:
            async with asyncio.timeout(self.remaining_seconds()):
                await self.network.backoff(attempts - 1)
        except TimeoutError:
            return False
        return self.remaining_seconds() > 0

    async def _guarded(
        self, keys: Sequence[Key], ask: Callable[[Sequence[Key]], Awaitable[Outcomes[Key, Value]]]
    ) -> Outcomes[Key, Value]:
        """What `ask` raises is the outcome of all its keys."""
        try:
            return await ask(keys)
        except OttlaError as error:
            return dict.fromkeys(keys, error)

    # Who is asked.

    async def in_pieces(
        self,
        keys: Sequence[Key],
        ask: Callable[[Sequence[Key]], Awaitable[Outcomes[Key, Value]]],
        size: int = MAX_KEYS_PER_REQUEST,
    ) -> Outcomes[Key, Value]:
        """One request after the other, each about so many keys at most; a piece that fails leaves the others be."""
        return merged([await self._guarded(piece, ask) for piece in pieces(keys, size)])

    async def by_broker(
        self, keys_of: Mapping[int, Sequence[Key]], ask: Callable[[int, Sequence[Key]], Awaitable[Outcomes[Key, Value]]]
    ) -> Outcomes[Key, Value]:
        """Each broker about its own keys, all brokers at the same time."""

        async def ask_one(node_id: int, keys: Sequence[Key]) -> Outcomes[Key, Value]:
            return await self.in_pieces(keys, lambda piece: ask(node_id, piece))

        ordered = sorted(keys_of.items())
        return merged(await asyncio.gather(*(ask_one(node_id, keys) for node_id, keys in ordered)))

    async def by_leader(
        self,
        partitions: Sequence[TopicPartition],
        ask: Callable[[int, Sequence[TopicPartition]], Awaitable[Outcomes[TopicPartition, Value]]],
    ) -> Outcomes[TopicPartition, Value]:
        topics = await self.topics(dict.fromkeys(partition.topic for partition in partitions))
        outcomes: dict[TopicPartition, Value | OttlaError] = {}
        led_by: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            leader = _leader_of(topics.get(partition.topic), partition)
            if isinstance(leader, OttlaError):
                outcomes[partition] = leader
            elif leader not in self.network.cluster.nodes:
                outcomes[partition] = failure(ErrorCode.LEADER_NOT_AVAILABLE, None, partition)
            else:
                led_by.setdefault(leader, []).append(partition)
        return merged([outcomes, await self.by_broker(led_by, ask)])

    async def by_coordinator(
        self,
        kind: CoordinatorKind,
        keys: Sequence[str],
        ask: Callable[[int, Sequence[str]], Awaitable[Outcomes[str, Value]]],
    ) -> Outcomes[str, Value]:
        free = asyncio.Semaphore(LOOKUPS_AT_ONCE)

        async def find(key: str) -> int | OttlaError:
            try:
                async with free, asyncio.timeout(self.attempt_seconds()):
                    return await self.network.coordinator(kind, key)
            except TimeoutError:
                return BrokerUnavailable(f"{key}: no broker said in time who its coordinator is; try again")
            except OttlaError as error:
                return error

        found = await asyncio.gather(*(find(key) for key in keys))
        outcomes: dict[str, Value | OttlaError] = {}
        kept_by: dict[int, list[str]] = {}
        for key, node in zip(keys, found, strict=True):
            if isinstance(node, OttlaError):
                outcomes[key] = node
            else:
                kept_by.setdefault(node, []).append(key)
        answered = await self.by_broker(kept_by, ask)
        for key, outcome in answered.items():
            if isinstance(outcome, BrokerUnavailable) or (isinstance(outcome, BrokerError) and outcome.code in MOVED):
                self.network.forget_coordinator(kind, key)
        return merged([outcomes, answered])

    async def topics(self, names: Iterable[str]) -> dict[str, MetadataResponseTopic]:
        """What a broker says of these topics now; asking creates none."""
        found: dict[str, MetadataResponseTopic] = {}
        for piece in pieces(list(names), MAX_KEYS_PER_REQUEST):
            wanted = [MetadataRequestTopic(name=name) for name in piece]
            answer = await self.to_any(
                MetadataRequest(topics=wanted, allow_auto_topic_creation=False), MetadataResponse
            )
            found |= {topic.name: topic for topic in answer.topics if topic.name is not None}
        return found


def pieces(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions for each topic, as most requests want them."""
    numbers: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(partition)
    return numbers


def as_partitions(given: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic, partition in given]


def _leader_of(topic: MetadataResponseTopic | None, partition: TopicPartition) -> int | OttlaError:
    if topic is None:
        return failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, partition)
    if topic.error_code:
        return failure(topic.error_code, None, partition)
    for info in topic.partitions:
        if info.partition_index == partition.partition:
            # A partition may be announced with an error (a replica is away) and have a leader nevertheless.
            if info.leader_id != NO_LEADER:
                return info.leader_id
            return failure(info.error_code or ErrorCode.LEADER_NOT_AVAILABLE, None, partition)
    return failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, partition)


def _is_asked_again(outcome: object, also_again: frozenset[ErrorCode], is_early: bool) -> bool:
    if isinstance(outcome, BrokerError):
        return outcome.code in ASKED_AGAIN or outcome.code in also_again
    # Who answers garbage a few times is no broker.
    if isinstance(outcome, InvalidAnswer):
        return is_early
    return isinstance(outcome, OttlaError) and outcome.is_retriable


def _silence(key: object) -> InvalidAnswer:
    return InvalidAnswer(f"{key}: the broker's answer does not mention it; is this a broker of Kafka's protocol?")
