"""One classic group: its state, and what others than its members ask of it."""

from enum import Enum

from ottla.groups.classic.answers import listed
from ottla.groups.classic.member import ClassicMember, Protocols
from ottla.groups.classic.members import Members
from ottla.groups.classic.sessions import Sessions
from ottla.groups.classic.subscription import subscribed_topics
from ottla.groups.entries import GroupMetadataKey
from ottla.groups.group import CLASSIC, Committer
from ottla.ledger import Entry
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.runtime import Clock

CONSUMER_PROTOCOL_TYPE = "consumer"


class State(Enum):
    """By Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_MAY_FOLLOW = {
    State.EMPTY: {State.PREPARING_REBALANCE},
    State.PREPARING_REBALANCE: {State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE},
    State.COMPLETING_REBALANCE: {State.PREPARING_REBALANCE},
    State.STABLE: {State.COMPLETING_REBALANCE},
    State.DEAD: set(State),
}


class ClassicGroup:
    """`state_since_ms` is unknown of groups that an old version of Kafka wrote.

    A group without a protocol type never had members: it is there for the offsets of those who need none.
    `topics` is what members of this generation read, None while that is not known.
    """

    def __init__(
        self,
        group_id: str,
        clock: Clock,
        sessions: Sessions,
        *,
        state: State = State.EMPTY,
        state_since_ms: int | None = None,
        generation: int = 0,
        agreed_type: str | None = None,
        protocol: str | None = None,
    ) -> None:
        self._group_id = group_id
        self._clock = clock
        self._sessions = sessions
        self.state = state
        self.previous_state = State.DEAD
        self.state_since_ms = state_since_ms
        self.generation = generation
        self.agreed_type = agreed_type
        self.protocol = protocol
        self.members = Members()
        self.topics: frozenset[str] | None = None
        self.was_joined_while_new = False

    def __repr__(self) -> str:
        return f"<classic group {self._group_id!r}, {self.state.value}, generation {self.generation}>"

    # Its way

    def turn(self, state: State) -> None:
        assert self.state in _MAY_FOLLOW[state], f"{self!r} cannot become {state.value}"
        self.previous_state, self.state = self.state, state
        self.state_since_ms = self._clock.now_ms()

    @property
    def can_rebalance(self) -> bool:
        return self.state in _MAY_FOLLOW[State.PREPARING_REBALANCE]

    @property
    def is_first_rebalance(self) -> bool:
        """Whether it had no members before those who are joining now; more may be about to come."""
        return self.state is State.PREPARING_REBALANCE and self.previous_state is State.EMPTY

    def next_generation(self) -> None:
        """Everybody who takes part has joined."""
        self.generation += 1
        self.members.unsynced.clear()
        if len(self.members):
            self.protocol = self.members.elected_protocol()
            self.look_at_subscriptions()
            self.turn(State.COMPLETING_REBALANCE)
        else:
            self.protocol = None
            self.look_at_subscriptions()
            self.turn(State.EMPTY)

    def look_at_subscriptions(self) -> None:
        self.topics = None
        members = self.members.by_id.values()
        if self.agreed_type == CONSUMER_PROTOCOL_TYPE and (self.protocol is not None or not members):
            self.topics = subscribed_topics(member.metadata(self.protocol) for member in members)

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not len(self.members):
            self.agreed_type = protocol_type
        self.members.add(member)

    def agrees_with(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these could be of this group."""
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.agreed_type == protocol_type and self.members.agree_with(protocols)

    def told_to(self, member: ClassicMember, *, skip_assignment: bool = False) -> JoinGroupResponse:
        """The generation, as the member learns of it: the leader is told of all the others too."""
        is_leader = member.member_id == self.members.leader
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=self.generation,
            protocol_type=self.agreed_type,
            protocol_name=self.protocol,
            leader=self.members.leader or "",
            skip_assignment=skip_assignment,
            member_id=member.member_id,
            members=listed(self.members.by_id.values(), self.protocol) if is_leader else [],
        )

    # What a member may do

    def member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member that a request comes from, or the refusal of somebody else."""
        if instance_id is not None:
            known_id = self.members.by_instance.get(instance_id)
            if known_id is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{self._group_id} has no instance {instance_id}")
            if known_id != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"instance {instance_id} is {known_id} by now")
        found = self.members.by_id.get(member_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{self._group_id} has no member {member_id}")
        return found

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION, f"{self._group_id} is at generation {self.generation}, not {generation}"
            )

    # What is asked of groups of any kind (groups/group.py)

    @property
    def group_id(self) -> str:
        return self._group_id

    @property
    def kind(self) -> str:
        return CLASSIC

    @property
    def protocol_type(self) -> str:
        return self.agreed_type or ""

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    def check_commit(self, committer: Committer, *, is_transactional: bool, api_version: int) -> None:
        if self.state is State.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self._group_id} is gone")
        if committer.epoch < 0 and self.state is State.EMPTY:
            return
        if committer.epoch >= 0 or committer.member_id or committer.instance_id is not None:
            self.member(committer.member_id, committer.instance_id)
            self.check_generation(committer.epoch)
        elif not is_transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{self._group_id} has members: only they may commit")
        if self.state is State.COMPLETING_REBALANCE and not is_transactional:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"{self._group_id} is about to assign partitions")

    def commit_happened(self, committer: Committer, now_ms: int) -> None:
        member = self.members.by_id.get(committer.member_id)
        if member is not None and self.state in (State.STABLE, State.PREPARING_REBALANCE):
            self._sessions.renew(self._group_id, member)

    def check_fetch(self, committer: Committer) -> None:
        self._check_alive()

    def check_delete(self) -> None:
        self._check_alive()
        if self.state is not State.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"{self._group_id} has members")

    def _check_alive(self) -> None:
        if self.state is State.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{self._group_id} is gone")

    def is_subscribed(self, topic: str) -> bool:
        """Of consumers that cannot be understood, every topic may be read."""
        if self.topics is None:
            return self.agreed_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.topics

    def offset_expiry_base_ms(self, commit_timestamp: int) -> int | None:
        """They age from when the group became empty; while it is stable, those of topics that it does not read do."""
        if self.agreed_type is None:
            return commit_timestamp
        if self.state is State.EMPTY:
            return commit_timestamp if self.state_since_ms is None else self.state_since_ms
        if self.state is State.STABLE and self.topics is not None:
            return commit_timestamp
        return None

    def tombstones(self) -> list[Entry]:
        return [Entry(GroupMetadataKey(group=self._group_id))]

    def describe(self) -> DescribedGroup:
        """As DescribeGroups shows it: what members say in the protocol only while there is an agreed one."""
        is_stable = self.state is State.STABLE
        return DescribedGroup(
            error_code=ErrorCode.NONE,
            group_id=self._group_id,
            group_state=self.state.value,
            protocol_type=self.agreed_type or "",
            protocol_data=(self.protocol or "") if is_stable else "",
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(self.protocol) if is_stable else b"",
                    member_assignment=member.assignment,
                )
                for member in self.members.by_id.values()
            ],
        )
