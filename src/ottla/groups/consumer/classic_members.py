"""Members of a consumer group that still speak the classic protocol.

Nobody leads them: each is told by the broker what it gets, as any other member of the group. JoinGroup is the heartbeat
that brings news, SyncGroup fetches the assignment, and Heartbeat tells that there are news:

| the member                                             | Heartbeat answers     |
|--------------------------------------------------------|-----------------------|
| is behind the target assignment                        | REBALANCE_IN_PROGRESS |
| is to give partitions back                             | REBALANCE_IN_PROGRESS |
| waited for partitions which are all free now           | REBALANCE_IN_PROGRESS |
| otherwise                                              | nothing               |

Generations are member epochs.
"""

from dataclasses import replace
from typing import Protocol, TypeVar

from ottla.groups.consumer.embedded import embedded_version, owned_by, read_subscription, write_assignment
from ottla.groups.consumer.group import CONSUMER_PROTOCOL_TYPE, ConsumerGroup
from ottla.groups.consumer.groups import ConsumerGroups
from ottla.groups.consumer.member import ConsumerMember, MemberState
from ottla.groups.consumer.membership import find_static, joining_static
from ottla.groups.entries import ClassicMemberMetadata, ClassicProtocol
from ottla.groups.group import Group
from ottla.ledger.entries import Entry
from ottla.ledger.machine import Decision
from ottla.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.uuids import uuid_to_text
from ottla.runtime.promise import Promise

MEMBER_ID_REQUIRED_SINCE_VERSION = 4
NO_MIGRATION = "disabled"

Answer = TypeVar("Answer")


class ClassicClient(Protocol):
    """Who sends a classic request."""

    @property
    def client_id(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def api_version(self) -> int: ...


class ClassicMembers:
    """Answers the four classic requests for consumer groups that are not empty; refusals are KafkaErrors."""

    def __init__(self, consumer: ConsumerGroups) -> None:
        self._consumer = consumer

    # Joining

    def join(
        self, group: Group, client: ClassicClient, request: JoinGroupRequest
    ) -> Decision[Promise[JoinGroupResponse]]:
        assert isinstance(group, ConsumerGroup)
        self._check_joining(group)
        context = self._consumer.context
        member_id = request.member_id or uuid_to_text(context.ids.uuid())
        self._consumer.check_room(group, member_id)
        self._check_protocols(group, request)
        needs_id = client.api_version >= MEMBER_ID_REQUIRED_SINCE_VERSION and request.group_instance_id is None
        if needs_id and not request.member_id:
            return _kept(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
        entries: list[Entry] = []
        before = self._joining(group, request, member_id, entries)
        subscription = _subscription(request)
        after = _updated(before, client, request, subscription)
        owned = owned_by(subscription, context.image())
        after = self._consumer.changes.apply(group, before, after, owned, entries)

        def written(error: KafkaError | None) -> None:
            if error is None:
                sessions = self._consumer.sessions
                sessions.joined(group.group_id, after.member_id)
                sessions.alive(group.group_id, after.member_id, request.session_timeout_ms)
                sessions.sync_due(group.group_id, after.member_id, after.rebalance_timeout_ms)

        decision = _kept(_joined(after))
        return Decision(decision.answer, entries, written=written)

    def _check_joining(self, group: ConsumerGroup) -> None:
        if self._consumer.context.settings().group_consumer_migration_policy == NO_MIGRATION:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group.group_id} is a consumer group, and group.consumer.migration.policy lets nobody migrate",
            )

    def _check_protocols(self, group: ConsumerGroup, request: JoinGroupRequest) -> None:
        """At least one of them has to be known to all classic members."""
        is_known = any(
            group.classic_protocols.get(protocol.name, 0) == group.classic_member_count
            for protocol in request.protocols
        )
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not is_known:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group.group_id} has no protocol in common with {request.member_id or 'the new member'}",
            )

    def _joining(
        self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str, entries: list[Entry]
    ) -> ConsumerMember:
        if request.group_instance_id is None:
            return group.members.get(member_id, ConsumerMember(member_id))
        if request.member_id:
            return find_static(group, request.group_instance_id, member_id)
        member, replacing = joining_static(group, request.group_instance_id, member_id, uses_classic_protocol=True)
        entries.extend(replacing)
        return member

    # Syncing, staying, leaving

    def sync(
        self, group: Group, client: ClassicClient, request: SyncGroupRequest
    ) -> Decision[Promise[SyncGroupResponse]]:
        assert isinstance(group, ConsumerGroup)
        member, classic = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        protocol = classic.supported_protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            protocol.name,
        ):
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"member {member.member_id} joined with {CONSUMER_PROTOCOL_TYPE}, {protocol.name}",
            )
        sessions = self._consumer.sessions
        if group.assignment_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            sessions.join_due(group.group_id, member.member_id, member.rebalance_timeout_ms)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"member {member.member_id} has to join again")
        sessions.synced(group.group_id, member.member_id)
        sessions.alive(group.group_id, member.member_id, classic.session_timeout_ms)
        image = self._consumer.context.image()
        return _kept(
            SyncGroupResponse(
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignment=write_assignment(member.assigned, embedded_version(protocol.metadata), image),
            )
        )

    def heartbeat(self, group: Group, client: ClassicClient, request: HeartbeatRequest) -> Decision[HeartbeatResponse]:
        assert isinstance(group, ConsumerGroup)
        member, classic = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        sessions = self._consumer.sessions
        sessions.alive(group.group_id, member.member_id, classic.session_timeout_ms)
        got_free = member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_partitions(member)
        if member.member_epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS or got_free:
            sessions.join_due(group.group_id, member.member_id, member.rebalance_timeout_ms)
            return Decision(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return Decision(HeartbeatResponse())

    def leave(self, group: Group, client: ClassicClient, request: LeaveGroupRequest) -> Decision[LeaveGroupResponse]:
        """Members of both protocols: this is also how an administrator removes members."""
        assert isinstance(group, ConsumerGroup)
        leaving: dict[str, ConsumerMember] = {}
        response = LeaveGroupResponse(members=[])
        for identity in request.members:
            code = ErrorCode.NONE
            try:
                member = _leaving(group, identity.member_id, identity.group_instance_id)
                leaving[member.member_id] = member
            except KafkaError as error:
                code = error.code
            response.members.append(
                MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code
                )
            )
        return self._consumer.remove(group, list(leaving.values()), response)


def _kept(answer: Answer) -> Decision[Promise[Answer]]:
    promise: Promise[Answer] = Promise()
    promise.resolve(answer)
    return Decision(promise)


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.supported_protocols[0].name,
        leader="",
        members=[],
    )


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the subscription cannot be read: {error}") from error


def _updated(
    member: ConsumerMember,
    client: ClassicClient,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    timeout_ms = request.session_timeout_ms if client.api_version == 0 else request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=protocol.name, metadata=protocol.metadata) for protocol in request.protocols
            ],
        ),
    )


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    member = group.member(member_id) if instance_id is None else find_static(group, instance_id, member_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id} does not speak the classic protocol")
    return member, member.classic


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION, f"member {member.member_id} is at {member.member_epoch}, not {generation}"
        )


def _leaving(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """An administrator names the instance only."""
    if instance_id is None:
        return group.member(member_id)
    known = group.static_member(instance_id)
    return find_static(group, instance_id, member_id or (known.member_id if known is not None else ""))
