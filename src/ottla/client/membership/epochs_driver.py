"""A consumer in a group of the next generation: the driver of `EpochMember`."""

from collections.abc import Coroutine
from contextlib import suppress

from ottla.client.errors import BrokerError, BrokerUnavailable, InvalidAnswer, UnsupportedByBroker, error_of
from ottla.client.membership.answers import Next, final_error
from ottla.client.membership.driver import Driver, Member
from ottla.client.membership.epochs import EpochMember, Reconciliation, Wish
from ottla.client.membership.interface import Rebalancing
from ottla.client.membership.settings import GroupSettings
from ottla.client.network import Network
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.uuids import uuid_to_text
from ottla.runtime import Clock, IdSource

_NO_EXPRESSION = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REGULAR_EXPRESSION)
"""The broker does not take expressions, or not this one: it is resolved here."""


class EpochMembership(Driver):
    RESOLVED_BY_BROKER = True

    def __init__(
        self, network: Network, settings: GroupSettings, rebalancing: Rebalancing, clock: Clock, ids: IdSource
    ) -> None:
        super().__init__(network, settings, rebalancing, clock)
        self._epochs = EpochMember(settings, uuid_to_text(ids.uuid()))
        self._names: dict[bytes, str] = {}
        self._heartbeat_due = clock.monotonic()
        self._failed_heartbeats = 0
        self._is_reconciling = False
        self._last_wish = Wish()

    @property
    def _member(self) -> Member:
        return self._epochs

    @property
    def is_rebalancing(self) -> bool:
        is_settled = self._epochs.generation.is_member and not self._is_reconciling
        return self._wanted.topics is not None and not is_settled

    def request_rejoin(self, reason: str) -> None:
        """The broker decides when to rebalance."""

    def _topics_changed(self) -> None:
        if self._epochs.has_news(self._wish()):
            self._beat.set()

    def _wish(self) -> Wish:
        """What is asked for; who gives everything back asks for what it had, until it has left."""
        if not self._is_releasing:
            expression = self._wanted.expression
            self._last_wish = Wish(expression=expression) if expression else Wish(names=self._wanted.names())
        return self._last_wish

    @property
    def _is_releasing(self) -> bool:
        return self._must_release and self._epochs.generation.is_member

    def _farewell(self, reason: str) -> Coroutine[None, None, None]:
        request = self._epochs.leave_request()
        self._epochs.leave()
        return self._say_farewell(request)

    async def _say_farewell(self, request: ConsumerGroupHeartbeatRequest | None) -> None:
        if request is not None:
            await self._ask(request, ConsumerGroupHeartbeatResponse)

    # Reconciling.

    async def _turn(self) -> None:
        member = self._epochs
        if not member.generation.is_member:
            await self._lose()
        if await self._unsubscribed():
            return
        self._beat.set()
        while member.generation.is_member:
            await self._learn_names()
            change = member.reconciliation(self._names)
            if change is None:
                if not member.target:
                    self._wanted.note_share(self.group_id, member.owned)
                return
            self._is_reconciling = True
            try:
                await self._reconcile(change)
            finally:
                self._is_reconciling = False

    async def _reconcile(self, change: Reconciliation) -> None:
        member = self._epochs
        await self._revoke(change.revoked)
        if not member.generation.is_member:
            return
        if change.target == member.target:
            member.took(change)
            await self._assign(change.added)
        member.acknowledge()
        self._beat.set()

    async def _learn_names(self) -> None:
        """The broker names topics by their ids; those of a pattern need not be known here yet."""
        names = dict(self._network.cluster.names_by_id)
        assigned = {topic_id for topic_id, _partition in self._epochs.target or ()}
        self._names = {topic_id: name for topic_id, name in (self._names | names).items() if topic_id in assigned}
        missing = self._epochs.unknown_ids(self._names)
        if missing:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in missing],
                allow_auto_topic_creation=False,
            )
            with suppress(BrokerUnavailable, InvalidAnswer):
                answer = await self._network.ask_any(request, MetadataResponse)
                found = {topic.topic_id: topic.name for topic in answer.topics if not topic.error_code and topic.name}
                self._names |= {topic_id: name for topic_id, name in found.items() if topic_id in missing}
        self._wanted.watch(frozenset(self._names.values()))

    # Heartbeats.

    async def _pulse(self) -> float:
        member = self._epochs
        has_left = self._wanted.topics is None or self._must_release
        if (has_left and not self._is_releasing) or (member.owned and not member.generation.is_member):
            return member.heartbeat_interval_ms / 1000
        await self._wanted.known(frozenset(), self._settings.request_timeout_ms / 1000)
        left = self._heartbeat_due - self._clock.monotonic()
        if left > 0 and not member.has_news(self._wish()):
            return left
        outcome = await self._heartbeat()
        if outcome in (Next.GO_ON, Next.AGAIN):
            self._failed_heartbeats = 0
            self._heartbeat_due = self._clock.monotonic() + member.heartbeat_interval_ms / 1000
            return 0.0 if outcome is Next.AGAIN else member.heartbeat_interval_ms / 1000
        if outcome is Next.ELSEWHERE:
            self._forget_coordinator()
        await self._network.backoff(self._failed_heartbeats)
        self._failed_heartbeats += 1
        return 0.0

    async def _heartbeat(self) -> Next:
        member = self._epochs
        sent = member.generation
        try:
            answer = await self._ask_in_a_version_it_has(member.heartbeat_request(self._wish()))
            outcome = Next.LATER if answer is None else member.heartbeat_answered(answer, sent)
        except BrokerError as error:
            if self._wanted.expression is None or error.code not in _NO_EXPRESSION:
                raise
            self._wanted.resolve_here()
            answer, outcome = None, Next.LATER
        if answer is None:
            member.unanswered()
            return outcome
        if answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._note(error_of(answer.error_code, f"{answer.error_message}: ask for READ on the topics subscribed to"))
        if self._wanted.topics is None and not self._must_release:
            await self._farewell("the consumer unsubscribed while it joined")
        self._noticed()
        return outcome

    async def _ask_in_a_version_it_has(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | None:
        try:
            return await self._ask(request, ConsumerGroupHeartbeatResponse)
        except UnsupportedByBroker as error:
            raise final_error(error.code, self.group_id, None, str(error)) from error
