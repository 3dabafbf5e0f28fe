"""Keeps the assigned partitions supplied: finds where to begin, makes sure that it is still there, and fetches.

`kick` says that something changed (an assignment, a seek, room, metadata); one turn of the loop later every question
that can be asked is asked, each in a task of its own, none twice.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from ottla.client.cluster import Cluster, Node
from ottla.client.consumer.attention import Attention
from ottla.client.consumer.commits import OffsetStore
from ottla.client.consumer.fetcher import Fetcher, FetchPlan
from ottla.client.consumer.lookups import OffsetLookup, ask_epochs, grouped, judge
from ottla.client.consumer.notices import Resets
from ottla.client.consumer.positions import Assignment, PartitionState, Phase, Position
from ottla.client.consumer.prefetch import Prefetch
from ottla.client.consumer.settings import FetchSettings
from ottla.client.consumer.topics import final_error
from ottla.client.consumer.values import NO_OFFSET, OffsetSpec
from ottla.client.errors import (
    BrokerUnavailable,
    InvalidAnswer,
    NoOffset,
    OttlaError,
    UnsupportedByBroker,
)
from ottla.client.network import Network
from ottla.client.types import TopicPartition
from ottla.protocol.messages.fetch import FetchResponse
from ottla.runtime import Clock
from ottla.runtime.promise import Promise

# What is worked on faster than a request is made.
_FEW_BYTES = 16 * 1024


class Supply:
    """`store` is None without a group. All of it belongs to the loop, but `kick_from_thread`."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        settings: FetchSettings,
        assignment: Assignment,
        prefetch: Prefetch,
        fetcher: Fetcher,
        attention: Attention,
        store: OffsetStore | None,
        request_timeout_seconds: float,
        api_timeout_seconds: float,
    ) -> None:
        self._network = network
        self._clock = clock
        self._settings = settings
        self._assignment = assignment
        self._prefetch = prefetch
        self._fetcher = fetcher
        self._attention = attention
        self._store = store
        self._request_timeout_seconds = request_timeout_seconds
        self._api_timeout_seconds = api_timeout_seconds
        self.lookup = OffsetLookup(network, clock, is_read_committed=settings.is_read_committed)
        self._resets = Resets(settings.reset.name)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._is_kicked = False
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._reported_topics: set[str] = set()
        network.on_cluster(self._cluster_changed)

    # Turns

    def kick(self) -> None:
        if not self._is_kicked and not self._is_closed:
            self._is_kicked = True
            self._loop.call_soon(self._turn)

    def kick_from_thread(self) -> None:
        """The same from any thread."""
        if not self._is_kicked and not self._is_closed:
            self._loop.call_soon_threadsafe(self.kick)

    def _turn(self) -> None:
        self._is_kicked = False
        if self._is_closed:
            return
        now = self._clock.monotonic()
        for plan in self._fetcher.plans(self._network.cluster, now):
            self._send(plan)
        if not self._assignment.is_settled(now):
            self._find_positions(now)
            self._set_timer(now)

    def _find_positions(self, now: float) -> None:
        ready = [state for state in self._assignment if not state.is_asking and now >= state.retry_at]
        new = [state for state in ready if state.phase is Phase.COMMITTED]
        if new and self._store is not None:
            self._ask(self._load_committed(self._store, new), new)
        elif new:
            for state in new:
                self.reset(state)
            ready += new
        for phase, question in ((Phase.RESETTING, self._reset), (Phase.VALIDATING, self._validate)):
            states = {state.topic_partition: state for state in ready if state.phase is phase}
            by_node = grouped(self._network.cluster, states)
            for node_id in sorted(by_node):
                asked = [states[partition] for partition in by_node[node_id]]
                self._ask(question(node_id, asked), asked)
            if sum(map(len, by_node.values())) < len(states):
                self._network.request_update()

    def _ask(self, question: Coroutine[Any, Any, None], states: list[PartitionState]) -> None:
        for state in states:
            state.is_asking = True

        async def asked() -> None:
            try:
                await question
            except (BrokerUnavailable, InvalidAnswer):
                self._retry_later(states)
                self._network.request_update()
            except OttlaError as error:
                for state in states:
                    state.fail()
                self._attention.report(error)
            finally:
                for state in states:
                    state.is_asking = False
                self.kick()

        self._start(asked())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._attention.report(error if isinstance(error, OttlaError) else OttlaError(f"{error!r}"))

    def _retry_later(self, states: list[PartitionState]) -> None:
        retry_at = self._clock.monotonic() + self._settings.retry_backoff_seconds
        for state in states:
            state.retry_at = retry_at

    def _set_timer(self, now: float) -> None:
        """Look again when the first partition that waits after an error has waited long enough."""
        waiting = [state.retry_at for state in self._assignment if state.retry_at > now]
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if waiting:
            self._timer = self._loop.call_later(min(waiting) - now + 0.001, self.kick)

    def _cluster_changed(self, old: Cluster, new: Cluster) -> None:
        for state in self._assignment:
            info = new.partition(state.topic, state.partition)
            if info is not None:
                self.see_leader_epoch(state, info.leader_epoch)
            elif (error := final_error(self._network, state.topic)) and state.topic not in self._reported_topics:
                self._reported_topics.add(state.topic)
                self._attention.report(error)
        self.kick()

    def see_leader_epoch(self, state: PartitionState, epoch: int) -> None:
        if state.see_leader_epoch(epoch):
            self._prefetch.hold(state)

    # Fetching

    def _send(self, plan: FetchPlan) -> None:
        """At once and without a task where that can be: a fetch is on the way of every record."""
        try:
            promise = None
            if self._settings.fetch_max_wait_ms / 1000 < self._request_timeout_seconds:
                promise = self._network.ask_now(plan.node_id, plan.request, max_version=plan.max_version)
        except OttlaError as error:
            self._fetch_failed(plan, error)
            return
        if promise is None:
            self._start(self._fetch(plan))
            return
        promise.add_done_callback(lambda landed: self._landed(plan, landed))

    def _landed(self, plan: FetchPlan, landed: Promise[FetchResponse]) -> None:
        if landed.cancelled():
            self._fetcher.failed(plan, 0.0)
            return
        error = landed.exception()
        if self._is_closed:
            self._fetcher.failed(plan, 0.0)
        elif error is None:
            self._fetched(plan, landed.result())
        else:
            self._fetch_failed(plan, error)

    async def _fetch(self, plan: FetchPlan) -> None:
        timeout = self._request_timeout_seconds + self._settings.fetch_max_wait_ms / 1000
        try:
            response = await self._network.ask(
                plan.node_id, plan.request, FetchResponse, timeout_seconds=timeout, max_version=plan.max_version
            )
        except OttlaError as error:
            self._fetch_failed(plan, error)
        except asyncio.CancelledError:
            self._fetcher.failed(plan, 0.0)
            raise
        else:
            self._fetched(plan, response)

    def _fetch_failed(self, plan: FetchPlan, error: BaseException) -> None:
        self._fetcher.failed(plan, self._clock.monotonic() + self._settings.retry_backoff_seconds)
        if isinstance(error, BrokerUnavailable | InvalidAnswer):
            self._network.request_update()
        else:
            self._attention.report(error if isinstance(error, OttlaError) else OttlaError(f"{error!r}"))
        self.kick()

    def _fetched(self, plan: FetchPlan, response: FetchResponse) -> None:
        outcome = self._fetcher.answered(plan, response, self._clock.monotonic())
        for state in outcome.out_of_range:
            self._out_of_range(state)
        for refusal in outcome.errors:
            self._attention.report(refusal)
        if outcome.leaders:
            endpoints = [Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
            for (topic, partition), leader in outcome.leaders:
                self._network.learn_leader(topic, partition, leader.leader_id, leader.leader_epoch, endpoints)
        if outcome.is_metadata_stale:
            self._network.request_update()
        if outcome.has_records and self._attention.is_awaited and self._prefetch.buffered_bytes <= _FEW_BYTES:
            # Few records, and somebody waits for them: they are handed out before the next request is even made.
            self.kick()
            self._attention.wake_at_once()
            return
        # The next request goes out before anybody works on what this one brought.
        self._turn()
        if outcome.has_records:
            self._attention.wake()

    def _out_of_range(self, state: PartitionState) -> None:
        """What is buffered is read first; the place behind it is the one that is not there."""
        if self._settings.reset.is_none:
            state.fail()
            self._attention.report(
                NoOffset(
                    f"{state.topic_partition} has no offset {state.fetch_offset}: the log begins behind it or ends "
                    "before it, and auto.offset.reset is none. seek to an offset that is there, or set "
                    "auto_offset_reset"
                )
            )
        elif state.next_offset == state.fetch_offset:
            offset = state.fetch_offset
            self._prefetch.drop(state)
            self.reset(state)
            self._resets.begin(state.topic_partition, offset, state.version)
        else:
            self._retry_later([state])

    # Positions

    def reset(self, state: PartitionState) -> None:
        """Go where `auto.offset.reset` says."""
        if self._settings.reset.is_none:
            state.fail()
            self._attention.report(
                NoOffset(
                    f"nothing is committed for {state.topic_partition} and auto.offset.reset is none: seek, or set "
                    "auto_offset_reset to earliest or latest"
                )
            )
            return
        state.need_reset(self._settings.reset.time_ms(self._clock.now_ms()))

    async def _load_committed(self, store: OffsetStore, states: list[PartitionState]) -> None:
        versions = {state.topic_partition: state.version for state in states}
        committed = await store.fetch(list(versions), self._api_timeout_seconds)
        for state in states:
            if not self._is_current(state, versions) or state.phase is not Phase.COMMITTED:
                continue
            found = committed[state.topic_partition]
            if found is None:
                self.reset(state)
            else:
                self._stand(state, Position(found.offset, found.leader_epoch))
        self._attention.wake()

    async def _reset(self, node_id: int, states: list[PartitionState]) -> None:
        versions = {state.topic_partition: state.version for state in states}
        found, moved = await self.lookup.ask(node_id, {state.topic_partition: state.reset_time for state in states})
        for state in states:
            answer = found.get(state.topic_partition)
            if not self._is_current(state, versions):
                continue
            if answer is None:
                self._retry_later([state])
            elif answer.offset == NO_OFFSET:
                # Nothing is that young: what comes next will be.
                before = state.version
                state.need_reset(OffsetSpec.LATEST)
                self._resets.go_on(state.topic_partition, before, state.version)
            else:
                self._resets.end(state.topic_partition, state.version, answer.offset)
                self._stand(state, Position(answer.offset, answer.leader_epoch))
        if moved:
            self._network.request_update()
        self._attention.wake()

    def _stand(self, state: PartitionState, position: Position) -> None:
        state.stand_at(position)
        info = self._network.cluster.partition(state.topic, state.partition)
        if info is not None:
            state.see_leader_epoch(info.leader_epoch)

    async def _validate(self, node_id: int, states: list[PartitionState]) -> None:
        versions = {state.topic_partition: state.version for state in states}
        try:
            answers = await ask_epochs(self._network, node_id, states)
        except UnsupportedByBroker:
            # A broker that keeps no epochs cannot tell; what it has is read as it is.
            for state in states:
                self._validated(state)
            self._attention.wake()
            return
        for state in states:
            answer = answers.get(state.topic_partition)
            if not self._is_current(state, versions) or state.phase is not Phase.VALIDATING:
                continue
            if answer is None:
                self._retry_later([state])
                continue
            verdict = judge(state, answer, self._settings.reset)
            if verdict.is_valid:
                self._validated(state)
            elif verdict.drop_buffered:
                self._prefetch.forget(state)
            elif verdict.go_to is not None:
                self._prefetch.cut(state, verdict.go_to)
            elif verdict.is_reset:
                self.reset(state)
            elif verdict.error is not None:
                state.fail()
                self._attention.report(verdict.error)
            else:
                self._retry_later([state])
                self._network.request_update()
        self._attention.wake()

    def _validated(self, state: PartitionState) -> None:
        state.phase = Phase.FETCHING
        self._prefetch.resume(state)

    def _is_current(self, state: PartitionState, versions: dict[TopicPartition, int]) -> bool:
        partition = state.topic_partition
        return self._assignment.get(partition) is state and state.version == versions[partition]

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
