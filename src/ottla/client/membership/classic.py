"""A member of a classic group, without connections and without a clock: requests out, answers in.

| state    | means                                                        | heartbeats | leaves with             |
|----------|--------------------------------------------------------------|------------|-------------------------|
| UNJOINED | no generation; what was owned is lost                        | no         | `join_request`          |
| JOINING  | JoinGroup is with the coordinator, which waits for the others | no         | its answer              |
| SYNCING  | in a generation; the leader decides                          | yes        | SyncGroup's answer      |
| STABLE   | has an assignment                                            | yes        | `rejoin`, `reset`       |

One turn of a rebalance, which the driver takes in this order:

1. `before_join` says what must be given back first: all of it (eager), what is no longer subscribed (cooperative), or,
   when the generation was lost, all of it without a word to the others. Until then the state is STABLE or UNJOINED.
2. `join_request`, `join_answered`.
3. the leader: `lead` with the metadata of all topics; `sync_request`, `sync_answered`.
4. `offer` compares what came with what is owned: the rest is given back, then the new is taken. A cooperative member
   that gave something back joins once more, so that others can get it.

Whatever belongs to another generation than the current one (a late heartbeat's answer, a commit's) changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto

from ottla.client.errors import ConsumerError
from ottla.client.membership.answers import MOVED, Next, final_error
from ottla.client.membership.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    GroupView,
    MemberAssignment,
    MemberSubscription,
    RebalanceProtocol,
    common_protocol,
)
from ottla.client.membership.assignors.model import java_order
from ottla.client.membership.embedded import (
    PROTOCOL_TYPE,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from ottla.client.membership.interface import NO_GENERATION, Generation
from ottla.client.membership.settings import GroupSettings
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode, MalformedMessage
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

REASON_CHARACTERS = 255
Racks = tuple[frozenset[str], ...]


class State(Enum):
    UNJOINED = auto()
    JOINING = auto()
    SYNCING = auto()
    STABLE = auto()


@dataclass(frozen=True, slots=True)
class Parting:
    """What must be given back; `is_lost` when others may have it already."""

    partitions: frozenset[TopicPartition]
    is_lost: bool


@dataclass(frozen=True, slots=True)
class Offer:
    """What a rebalance brought, in the generation in which it did."""

    generation: Generation
    assigned: frozenset[TopicPartition]
    revoked: frozenset[TopicPartition]
    added: frozenset[TopicPartition]


class ClassicMember:
    """`owned` is what the user reads; the driver takes from it (`gave_back`) and the offers add to it (`took`)."""

    def __init__(self, settings: GroupSettings) -> None:
        self.state = State.UNJOINED
        self.generation = Generation(instance_id=settings.group_instance_id)
        self.owned: frozenset[TopicPartition] = frozenset()
        self.is_leader = False
        self.needs_rejoin = True
        self.joined_topics: frozenset[str] | None = None
        self.rebalance_protocol = common_protocol(settings.assignors)
        self._settings = settings
        self._reason = ""
        self._protocol_name: str | None = None
        self._seen_by_leader: dict[str, Racks] | None = None
        self._assignment = b""

    # Reasons to join.

    def rejoin(self, reason: str) -> None:
        self.needs_rejoin = True
        self._reason = reason[:REASON_CHARACTERS]

    def reset(self, reason: str, *, forget_id: bool) -> None:
        """The group does not know this generation (or this member): what is owned is lost."""
        self.state = State.UNJOINED
        self.generation = self.generation._replace(
            generation=NO_GENERATION, member_id="" if forget_id else self.generation.member_id
        )
        self._protocol_name = None
        self.rejoin(reason)

    def topics_changed(self, topics: frozenset[str]) -> None:
        """What the subscription stands for now."""
        if self.joined_topics is not None and topics != self.joined_topics:
            self.rejoin("the subscription changed")

    def metadata_changed(self, racks_of: Callable[[str], Racks | None]) -> None:
        """The leader watches all topics of the group: when one is new, gone or grew, it calls for a rebalance."""
        if self._seen_by_leader is not None and self.is_leader and self.state is State.STABLE:
            seen = {topic: self._visible(racks_of(topic)) for topic in self._seen_by_leader}
            if seen != self._seen_by_leader:
                self.rejoin("the metadata of the group's topics changed")

    # Joining.

    def before_join(self, topics: frozenset[str]) -> Parting:
        if not self.generation.is_member:
            return Parting(self.owned, is_lost=True)
        if self.rebalance_protocol is RebalanceProtocol.EAGER:
            return Parting(self.owned, is_lost=False)
        return Parting(frozenset(part for part in self.owned if part.topic not in topics), is_lost=False)

    def gave_back(self, partitions: frozenset[TopicPartition]) -> None:
        self.owned -= partitions

    def join_request(self, topics: frozenset[str]) -> JoinGroupRequest:
        self.state = State.JOINING
        self.needs_rejoin = False
        self.is_leader = False
        self.joined_topics = topics
        settings = self._settings
        return JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=self.generation.member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=assignor.name, metadata=self._subscription(assignor, topics))
                for assignor in settings.assignors
            ],
            reason=self._reason or None,
        )

    def _subscription(self, assignor: Assignor, topics: frozenset[str]) -> bytes:
        generation = self.generation.generation
        with _blaming(assignor):
            user_data = assignor.user_data(topics)
        return write_subscription(
            MemberSubscription(
                topics=tuple(topics),
                owned=tuple(self.owned),
                generation=generation if generation >= 0 else None,
                user_data=user_data,
                rack=self._settings.client_rack or None,
            )
        )

    def join_answered(self, answer: JoinGroupResponse) -> Next:
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            if answer.protocol_type not in (None, PROTOCOL_TYPE):
                raise self._final(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            self.state = State.SYNCING
            self.generation = self.generation._replace(generation=answer.generation_id, member_id=answer.member_id)
            self._protocol_name = answer.protocol_name
            self.is_leader = answer.leader == answer.member_id
            self._seen_by_leader = None
            return Next.GO_ON
        self.needs_rejoin = True
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.generation = self.generation._replace(generation=NO_GENERATION, member_id=answer.member_id)
            self._reason = "joins with the id that the coordinator gave"
            return Next.AGAIN
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.reset("the coordinator did not know the member that joined", forget_id=True)
            return Next.AGAIN
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            return Next.LATER
        return self._unsettled(code)

    # The assignment.

    def lead(
        self, members: Iterable[JoinGroupResponseMember], racks_of: Callable[[str], Racks | None], *, is_kept: bool
    ) -> list[SyncGroupRequestAssignment]:
        """What the assignor that all members have gives to each; nothing when the coordinator keeps what was."""
        assignor = self._assignor()
        subscriptions = {
            member.member_id: read_subscription(member.metadata, member.group_instance_id)
            for member in sorted(members, key=lambda member: java_order(member.member_id))
        }
        wanted = sorted({topic for member in subscriptions.values() for topic in member.topics}, key=java_order)
        seen = {topic: racks_of(topic) for topic in wanted}
        self._seen_by_leader = {topic: self._visible(racks) for topic, racks in seen.items()}
        if is_kept:
            return []
        topics = {topic: racks for topic, racks in seen.items() if racks}
        with _blaming(assignor):
            assignments = dict(assignor.assign(GroupView(subscriptions, topics)))
        if self.rebalance_protocol is RebalanceProtocol.COOPERATIVE and assignor.name != CooperativeStickyAssignor.name:
            _check_cooperation(subscriptions, assignments)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id, assignment=write_assignment(assignments.get(member_id, MemberAssignment(())))
            )
            for member_id in subscriptions
        ]

    def topics_of_group(self, members: Iterable[JoinGroupResponseMember]) -> frozenset[str]:
        """What the leader must know the metadata of."""
        return frozenset(topic for member in members for topic in read_subscription(member.metadata).topics)

    def sync_request(self, assignments: list[SyncGroupRequestAssignment]) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation.generation,
            member_id=self.generation.member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self._protocol_name,
            assignments=assignments,
        )

    def sync_answered(self, answer: SyncGroupResponse, sent: Generation) -> Next:
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            if self.state is not State.SYNCING or sent != self.generation:
                self.rejoin("the generation ended while it was synced")
                return Next.AGAIN
            is_ours = answer.protocol_type in (None, PROTOCOL_TYPE)
            if not is_ours or answer.protocol_name not in (None, self._protocol_name):
                raise self._final(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            self.state = State.STABLE
            self._reason = ""
            self._assignment = answer.assignment
            return Next.GO_ON
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin("the group began another rebalance")
            return Next.AGAIN
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if sent == self.generation:
                forget_id = code is ErrorCode.UNKNOWN_MEMBER_ID
                self.reset(f"{code.name} in answer to SyncGroup", forget_id=forget_id)
            return Next.AGAIN
        self.rejoin(f"{code.name} in answer to SyncGroup")
        return self._unsettled(code)

    def offer(self, is_subscribed: Callable[[str], bool]) -> Offer | None:
        """What the leader gave; None when it is not what is subscribed to by now, and a new rebalance must tell."""
        try:
            assignment = read_assignment(self._assignment)
        except MalformedMessage as error:
            raise ConsumerError(
                f"the leader of group {self._settings.group_id} gave this member no assignment that can be read "
                f"({error}): look at the assignor of the other members"
            ) from error
        assigned = frozenset(assignment.partitions)
        if not all(is_subscribed(partition.topic) for partition in assigned):
            self.rejoin("what was assigned is not what is subscribed to")
            return None
        assignor = self._assignor()
        with _blaming(assignor):
            assignor.assigned(assignment, self.generation.generation)
        revoked = self.owned - assigned
        if revoked:
            self.rejoin("partitions were given back")
        return Offer(self.generation, assigned, revoked, assigned - self.owned)

    def took(self, offer: Offer) -> bool:
        """Whether the offer still stands, and is owned from now on."""
        if offer.generation != self.generation or self.state is not State.STABLE:
            return False
        self.owned = offer.assigned
        if self.joined_topics is not None:
            self.joined_topics |= {partition.topic for partition in offer.assigned}
        return True

    # Heartbeats, commits and leaving.

    @property
    def is_heartbeating(self) -> bool:
        return self.state in (State.SYNCING, State.STABLE)

    def heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation.generation,
            member_id=self.generation.member_id,
            group_instance_id=self._settings.group_instance_id,
        )

    def heartbeat_answered(self, error_code: int, sent: Generation) -> Next:
        code = ErrorCode(error_code)
        if code is ErrorCode.NONE:
            return Next.GO_ON
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state is State.STABLE and not self.needs_rejoin:
                self.rejoin("the group is rebalancing")
            return Next.GO_ON
        if code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            if sent == self.generation and self.is_heartbeating:
                if code is ErrorCode.FENCED_INSTANCE_ID:
                    raise self._final(code)
                forget_id = code is ErrorCode.UNKNOWN_MEMBER_ID
                self.reset(f"{code.name} in answer to a heartbeat", forget_id=forget_id)
            return Next.GO_ON
        return self._unsettled(code)

    def commit_refused(self, code: ErrorCode, sent: Generation) -> None:
        if sent != self.generation:
            return
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state is State.STABLE and not self.needs_rejoin:
                self.rejoin("a commit found the group rebalancing")
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION) and self.state is State.STABLE:
            forget_id = code is ErrorCode.UNKNOWN_MEMBER_ID
            self.reset(f"{code.name} in answer to a commit", forget_id=forget_id)
        elif code is ErrorCode.FENCED_INSTANCE_ID and self.state is not State.JOINING:
            raise self._final(code)

    def leave_request(self, reason: str) -> LeaveGroupRequest | None:
        """None for static members, which only their session's end removes, and for who never joined."""
        member_id = self.generation.member_id
        if not member_id or self._settings.group_instance_id is not None or self.state is State.UNJOINED:
            return None
        return LeaveGroupRequest(
            group_id=self._settings.group_id,
            members=[MemberIdentity(member_id=member_id, reason=reason[:REASON_CHARACTERS])],
        )

    # Pieces.

    def _unsettled(self, code: ErrorCode) -> Next:
        if code in MOVED:
            return Next.ELSEWHERE
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return Next.LATER
        raise self._final(code)

    def _final(self, code: ErrorCode) -> Exception:
        return final_error(code, self._settings.group_id, self._settings.group_instance_id)

    def _assignor(self) -> Assignor:
        for assignor in self._settings.assignors:
            if assignor.name == self._protocol_name:
                return assignor
        raise self._final(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _visible(self, racks: Racks | None) -> Racks:
        """Racks only count for members that have one."""
        return (racks or ()) if self._settings.client_rack else (frozenset[str](),) * len(racks or ())


@contextmanager
def _blaming(assignor: Assignor) -> Iterator[None]:
    """What an assignor of a user raises is told as its error."""
    try:
        yield
    except Exception as error:
        raise ConsumerError(f"the assignor {assignor.name} raised {error!r}: correct it") from error


def _check_cooperation(
    subscriptions: Mapping[str, MemberSubscription], assignments: Mapping[str, MemberAssignment]
) -> None:
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member_id, assignment in assignments.items():
        owned = subscriptions[member_id].owned
        added |= set(assignment.partitions).difference(owned)
        revoked |= set(owned).difference(assignment.partitions)
    if added & revoked:
        partitions = ", ".join(map(str, sorted(added & revoked)))
        raise ConsumerError(
            f"the assignor gave {partitions} to new members while others own them: a cooperative assignor first gives "
            "such partitions to nobody"
        )
