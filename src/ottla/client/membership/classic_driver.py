"""A consumer in a classic group: the driver of `ClassicMember`."""

from collections.abc import Coroutine

from ottla.client.errors import ConsumerError, OttlaError
from ottla.client.membership.answers import Next
from ottla.client.membership.classic import ClassicMember, Racks, State
from ottla.client.membership.driver import Driver, Member
from ottla.client.membership.interface import Rebalancing
from ottla.client.membership.settings import GroupSettings
from ottla.client.network import Network
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupRequestAssignment, SyncGroupResponse
from ottla.runtime import Clock

JOIN_GRACE_MS = 5_000
"""JoinGroup is answered when all members have joined, which takes as long as the rebalance timeout and a little."""


class ClassicMembership(Driver):
    def __init__(self, network: Network, settings: GroupSettings, rebalancing: Rebalancing, clock: Clock) -> None:
        super().__init__(network, settings, rebalancing, clock)
        self._classic = ClassicMember(settings)
        self._heartbeat_due = clock.monotonic()
        self._failed_heartbeats = 0

    @property
    def _member(self) -> Member:
        return self._classic

    @property
    def is_rebalancing(self) -> bool:
        is_settled = self._classic.state is State.STABLE and not self._classic.needs_rejoin
        return self._wanted.topics is not None and not is_settled

    def request_rejoin(self, reason: str) -> None:
        self._classic.rejoin(reason)
        self._work.set()

    def _topics_changed(self) -> None:
        self._classic.topics_changed(self._wanted.names())
        self._classic.metadata_changed(self._racks_of)

    def _farewell(self, reason: str) -> Coroutine[None, None, None]:
        request = self._classic.leave_request(reason)
        is_joining = self._classic.state is State.JOINING
        self._classic.reset(reason, forget_id=True)
        return self._say_farewell(request, overtakes=is_joining)

    async def _say_farewell(self, request: LeaveGroupRequest | None, *, overtakes: bool) -> None:
        if request is not None:
            await self._ask(request, LeaveGroupResponse, overtakes=overtakes)

    # Rebalances.

    async def _turn(self) -> None:
        member = self._classic
        if not member.generation.is_member:
            await self._lose()
        if await self._unsubscribed():
            return
        if member.state in (State.JOINING, State.SYNCING):
            member.rejoin("the last rebalance was broken off")
        attempt = 0
        while member.needs_rejoin and not self._is_away:
            outcome = await self._rebalance()
            self._changed()
            if outcome in (Next.GO_ON, Next.AGAIN):
                attempt = 0
                continue
            if outcome is Next.ELSEWHERE:
                self._forget_coordinator()
            await self._network.backoff(attempt)
            attempt += 1

    async def _rebalance(self) -> Next:
        """One turn of a rebalance, in the order that `ClassicMember` lays down."""
        member = self._classic
        await self._wanted.known(frozenset(), self._settings.request_timeout_ms / 1000)
        names = self._wanted.names()
        while (parting := member.before_join(names)).partitions:
            await (self._lose() if parting.is_lost else self._revoke(parting.partitions))
            names = self._wanted.names()
        timeout_ms = max(self._settings.request_timeout_ms, self._settings.max_poll_interval_ms + JOIN_GRACE_MS)
        joined = await self._ask(member.join_request(names), JoinGroupResponse, timeout_ms)
        if joined is None:
            member.rejoin("JoinGroup was not answered")
            return Next.LATER
        outcome = member.join_answered(joined)
        if outcome is not Next.GO_ON:
            return outcome
        self._heartbeat_due = self._clock.monotonic() + self._settings.heartbeat_interval_ms / 1000
        self._changed()
        try:
            assignments = await self._lead(joined)
        except (OttlaError, MalformedMessage) as error:
            return self._failed_to_assign(error)
        return await self._sync(assignments)

    async def _lead(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        if not self._classic.is_leader:
            self._wanted.watch(frozenset())
            return []
        topics = self._classic.topics_of_group(joined.members)
        self._wanted.watch(topics)
        await self._wanted.known(topics, self._settings.request_timeout_ms / 1000)
        self._note_refused_topics()
        return self._classic.lead(joined.members, self._racks_of, is_kept=joined.skip_assignment)

    def _failed_to_assign(self, error: OttlaError | MalformedMessage) -> Next:
        if isinstance(error, OttlaError):
            self._note(error)
        else:
            self._note(ConsumerError(f"a member of group {self.group_id} joined with what is no subscription: {error}"))
        self._classic.rejoin("the leader could not assign")
        return Next.LATER

    async def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> Next:
        member = self._classic
        sent = member.generation
        synced = await self._ask(member.sync_request(assignments), SyncGroupResponse)
        if synced is None:
            member.rejoin("SyncGroup was not answered")
            return Next.LATER
        outcome = member.sync_answered(synced, sent)
        if outcome is not Next.GO_ON:
            return outcome
        try:
            offer = member.offer(self._wanted.has)
        except ConsumerError as error:
            return self._failed_to_assign(error)
        if offer is None:
            return Next.AGAIN
        await self._revoke(offer.revoked)
        if member.took(offer):
            await self._assign(offer.added)
        return Next.GO_ON

    def _racks_of(self, topic: str) -> Racks | None:
        """The racks of the replicas of each partition; None for a topic that does not exist."""
        cluster = self._network.cluster
        info = cluster.topics.get(topic)
        if info is None:
            return None
        nodes = cluster.nodes
        return tuple(
            frozenset(rack for node in partition.replicas if node in nodes and (rack := nodes[node].rack))
            for partition in info.partitions
        )

    # Heartbeats.

    async def _pulse(self) -> float:
        interval = self._settings.heartbeat_interval_ms / 1000
        if not self._classic.is_heartbeating:
            return interval
        left = self._heartbeat_due - self._clock.monotonic()
        if left > 0:
            return left
        sent = self._classic.generation
        timeout_ms = min(self._settings.request_timeout_ms, self._settings.session_timeout_ms)
        answer = await self._ask(self._classic.heartbeat_request(), HeartbeatResponse, timeout_ms)
        outcome = Next.LATER if answer is None else self._classic.heartbeat_answered(answer.error_code, sent)
        self._noticed()
        if outcome is Next.GO_ON:
            self._failed_heartbeats = 0
            self._heartbeat_due = self._clock.monotonic() + interval
            return interval
        if outcome is Next.ELSEWHERE:
            self._forget_coordinator()
        await self._network.backoff(self._failed_heartbeats)
        self._failed_heartbeats += 1
        return 0.0
