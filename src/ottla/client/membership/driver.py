"""What drives a member of either protocol over a `Network`: one task for heartbeats, one for rebalances.

The heartbeats never wait for user code; the rebalance does, in `Rebalancing`. When a rebalance is overtaken (the user
unsubscribed, stayed away for too long, or the group threw the member out) its step is cancelled and begun again from
what is true by then. Only what is final ends the tasks: it is kept, told once through `Rebalancing.failed`, and raised
at every call from then on.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Protocol, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import (
    BrokerError,
    BrokerUnavailable,
    ConsumerError,
    InvalidAnswer,
    OttlaError,
    PollIntervalExceeded,
    error_of,
)
from ottla.client.membership.answers import final_error
from ottla.client.membership.interface import Generation, Rebalancing, Topics
from ottla.client.membership.patience import Patience
from ottla.client.membership.settings import GroupSettings
from ottla.client.membership.wanted import Wanted
from ottla.client.network import CoordinatorKind, Network, broker_of
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.runtime import Clock

NOTICES = 16
FAREWELL_SECONDS = 0.25
"""To say good-bye takes no longer than that, and spares the others a whole session: also when the time is over."""
Answer = TypeVar("Answer", bound=Response)


class Member(Protocol):
    """The state machine of either protocol, as far as both are alike."""

    @property
    def generation(self) -> Generation: ...

    @property
    def owned(self) -> frozenset[TopicPartition]: ...

    def gave_back(self, partitions: frozenset[TopicPartition]) -> None: ...

    def commit_refused(self, code: ErrorCode, sent: Generation) -> None: ...


class Driver(ABC):
    """`Membership`, except for what the protocols do differently: a step, the pulse and the farewell."""

    RESOLVED_BY_BROKER = False
    """Whether brokers can resolve patterns."""

    def __init__(self, network: Network, settings: GroupSettings, rebalancing: Rebalancing, clock: Clock) -> None:
        self._network = network
        self._settings = settings
        self._rebalancing = rebalancing
        self._clock = clock
        self._wanted = Wanted(
            network,
            exclude_internal_topics=settings.exclude_internal_topics,
            by_broker=self.RESOLVED_BY_BROKER,
        )
        self._patience = Patience(clock, settings.max_poll_interval_ms)
        self._is_away = False
        self._must_release = False
        self._has_left = False
        self._is_losing = False
        self._notices: deque[OttlaError] = deque(maxlen=NOTICES)
        self._final: OttlaError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._work = asyncio.Event()
        self._beat = asyncio.Event()
        self._news = asyncio.Event()
        self._ended: asyncio.Future[OttlaError | None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._step: asyncio.Task[None] | None = None
        network.on_cluster(self._cluster_changed)

    # What the protocols do differently.

    @property
    @abstractmethod
    def _member(self) -> Member: ...

    @property
    @abstractmethod
    def is_rebalancing(self) -> bool: ...

    @abstractmethod
    async def _turn(self) -> None:
        """Do whatever there is to do until there is nothing; called again when `_work` is set."""

    @abstractmethod
    async def _pulse(self) -> float:
        """One heartbeat, if it is time; the seconds until the next."""

    @abstractmethod
    def _topics_changed(self) -> None:
        """The subscription, or what a pattern stands for, may be another."""

    @abstractmethod
    def _farewell(self, reason: str) -> Coroutine[None, None, None]:
        """Forget the membership now; the coroutine tells the coordinator, if it has to be told."""

    @abstractmethod
    def request_rejoin(self, reason: str) -> None: ...

    # What a consumer sees.

    @property
    def group_id(self) -> str:
        return self._settings.group_id

    @property
    def generation(self) -> Generation:
        return self._member.generation

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._member.owned

    def subscribe(self, topics: Topics) -> None:
        if topics == frozenset():
            self.unsubscribe()
            return
        if self._wanted.topics is None:
            self._patience.polled()
        self._wanted.set(topics)
        self._topics_changed()
        self._work.set()

    def unsubscribe(self) -> None:
        self._wanted.set(None)
        self._must_release = True
        self._interrupt()

    def polled(self) -> None:
        self._patience.polled()
        if self._is_away and self._loop is not None:
            self._loop.call_soon_threadsafe(self._come_back)

    def waiting(self, is_waiting: bool) -> None:
        self._patience.waiting(is_waiting)
        self.polled()

    def raise_if_lost(self) -> None:
        if self._notices:
            raise self._notices.popleft()
        if self._final is not None:
            raise self._final.with_traceback(None)

    def commit_refused(self, code: ErrorCode, generation: Generation) -> None:
        try:
            self._member.commit_refused(code, generation)
        except OttlaError as error:
            self._end(error)
        self._noticed()

    async def wait_for_epoch(self, older: Generation, timeout_seconds: float) -> Generation:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while self.generation == older and self._final is None:
                    await self._news.wait()
        return self.generation

    async def run(self) -> None:
        if self._has_left:
            return
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._tasks = [asyncio.create_task(self._steps()), asyncio.create_task(self._pulses())]
        for task in self._tasks:
            task.add_done_callback(self._task_ended)
        try:
            error = await self._ended
            await self._stop_tasks()
            if error is not None:
                await self._give_up(error)
        finally:
            await self._stop_tasks()

    async def leave(self, timeout_seconds: float) -> None:
        deadline = self._clock.monotonic() + timeout_seconds
        self._has_left = True
        if self._tasks:
            self._tasks[0].cancel()
            await asyncio.wait(self._tasks[:1])
        if self._step is not None:
            self._step.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._release()
        self._member.gave_back(self._member.owned)
        self._is_away = False
        # A heartbeat of one who is no member joins: from here on there is none.
        await self._stop_tasks()
        farewell = self._farewell("the consumer was closed")
        self._changed()
        with suppress(TimeoutError, OttlaError):
            async with asyncio.timeout(max(FAREWELL_SECONDS, deadline - self._clock.monotonic())):
                await farewell
        self._wanted.set(None)
        self._end(None)

    # Tasks.

    async def _steps(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            self._step = asyncio.create_task(self._turn())
            try:
                await self._step
            except asyncio.CancelledError:
                me = asyncio.current_task()
                if me is None or me.cancelling():
                    raise
            finally:
                self._changed()

    async def _pulses(self) -> None:
        while True:
            seconds = await self._pulse() if not self._is_away else self._settings.heartbeat_interval_ms / 1000
            if self._wanted.topics is not None and not self._is_away:
                left = self._patience.left_seconds()
                if left <= 0:
                    await self._stay_away()
                    continue
                seconds = min(seconds, left)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._beat.wait()
            self._beat.clear()

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, OttlaError):
            self._end(error)
        elif error is not None:
            defect = ConsumerError(f"the consumer left group {self.group_id} because of a defect: {error!r}")
            defect.__cause__ = error
            self._end(defect)

    def _end(self, error: OttlaError | None) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(error)

    async def _stop_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _give_up(self, error: OttlaError) -> None:
        """Final: what is owned is lost, and every call says why."""
        self._final = error
        self._rebalancing.failed(error)
        farewell = self._farewell("the consumer failed")
        self._changed()
        with suppress(OttlaError):
            await farewell
        self._step = asyncio.create_task(self._lose())
        await asyncio.wait([self._step])

    # Pieces of a step.

    async def _unsubscribed(self) -> bool:
        """Whether there is nothing to join for. What was subscribed before has been given back."""
        if self._must_release:
            await self._release()
            self._must_release = False
            await self._farewell("the consumer unsubscribed")
        return self._wanted.topics is None

    async def _revoke(self, partitions: frozenset[TopicPartition]) -> None:
        if partitions:
            await self._guarded(self._rebalancing.revoke(partitions))
            self._member.gave_back(partitions)
            self._changed()

    async def _lose(self) -> None:
        lost = self._member.owned
        if lost:
            self._member.gave_back(lost)
            self._changed()
            self._is_losing = True
            try:
                await self._guarded(self._rebalancing.lose(lost))
            finally:
                self._is_losing = False

    async def _assign(self, partitions: frozenset[TopicPartition]) -> None:
        self._changed()
        await self._guarded(self._rebalancing.assign(partitions))
        self._wanted.note_share(self.group_id, self._member.owned)

    async def _release(self) -> None:
        """Give back everything: in good order, if the group still knows us."""
        if self._member.generation.is_member:
            await self._revoke(self._member.owned)
        else:
            await self._lose()

    async def _guarded(self, callback: Coroutine[None, None, None]) -> None:
        try:
            await callback
        except OttlaError as error:
            self._note(error)
        except Exception as error:
            wrapped = ConsumerError(f"a rebalance listener raised {error!r}")
            wrapped.__cause__ = error
            self._note(wrapped)

    def _note(self, error: OttlaError) -> None:
        self._notices.append(error)
        self._rebalancing.failed(error)

    def _note_refused_topics(self) -> None:
        refused = self._wanted.refused()
        if refused is not None:
            code, names = refused
            advice = "ask for READ on it" if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED else "correct the name"
            self._note(error_of(code, f"{code.name}: {', '.join(names)}: {advice}"))

    # Coordinator.

    async def _ask(
        self, request: Request, answer: type[Answer], timeout_ms: int | None = None, *, overtakes: bool = False
    ) -> Answer | None:
        """None when nobody answered: the coordinator is looked up again next time.

        A broker answers the requests of a connection in turn, and JoinGroup only when all members are there: what must
        not wait for that overtakes it on the connection that records come by.
        """
        network = self._network
        timeout_ms = timeout_ms or self._settings.request_timeout_ms
        try:
            node_id = await self._coordinator()
            node_id = broker_of(node_id) if overtakes else node_id
            return await network.ask(node_id, request, answer, timeout_seconds=timeout_ms / 1000)
        except (BrokerUnavailable, InvalidAnswer):
            self._forget_coordinator()
            return None

    async def _coordinator(self) -> int:
        try:
            return await self._network.coordinator(CoordinatorKind.GROUP, self.group_id)
        except BrokerError as error:
            raise final_error(error.code, self.group_id, self._settings.group_instance_id, str(error)) from error

    def _forget_coordinator(self) -> None:
        self._network.forget_coordinator(CoordinatorKind.GROUP, self.group_id)

    # Events.

    def _cluster_changed(self, old: Cluster, new: Cluster) -> None:
        if self._wanted.topics is not None:
            self._topics_changed()
            self._work.set()

    def _noticed(self) -> None:
        """Something changed outside of a step: one that waits for user code is overtaken if the group threw us out."""
        self._changed()
        self._work.set()
        if self._member.owned and not self._member.generation.is_member:
            self._interrupt()

    def _interrupt(self) -> None:
        """Begin the step anew; but what is lost already is told to the end, because nobody would tell it again."""
        if self._step is not None and not self._is_losing:
            self._step.cancel()
        self._work.set()

    def _changed(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _stay_away(self) -> None:
        """User code did not come back: leave, and say so when it does."""
        self._is_away = True
        farewell = self._farewell("max.poll.interval.ms passed between two polls")
        self._interrupt()
        self._note(
            PollIntervalExceeded(
                f"the code between two calls took longer than max.poll.interval.ms "
                f"({self._settings.max_poll_interval_ms}), so this consumer left group {self.group_id} and others read "
                "its partitions; it joins again with the next call. Raise max.poll.interval.ms, or lower "
                "max.poll.records"
            )
        )
        with suppress(OttlaError):
            await farewell

    def _come_back(self) -> None:
        self._is_away = False
        self._work.set()
