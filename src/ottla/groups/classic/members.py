"""Who is in a classic group, who leads it, and on which protocol they can agree."""

from ottla.groups.classic.member import ClassicMember, Protocols, one_more
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.runtime.promise import Promise

PENDING_LIMIT = 10_000


class Members:
    """The members in the order in which they came, which also is the order of those who may lead.

    `pending` are ids that were given to clients which have to come back with them. `unsynced` are members that have
    been told of the generation and have not asked for their part of it yet. What must stay true: there is a leader as
    soon as there is a member, and at least one protocol is known to all of them.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, ClassicMember] = {}
        self.by_instance: dict[str, str] = {}
        self.leader: str | None = None
        self.pending: dict[str, None] = {}
        self.unsynced: dict[str, None] = {}
        self._joining = 0
        self._known_to: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    @property
    def joining_count(self) -> int:
        """How many members wait for the next generation."""
        return self._joining

    @property
    def all_joined(self) -> bool:
        return len(self.by_id) == self._joining and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long members get to join: as long as the most patient of them allows."""
        return max([0, *(member.rebalance_timeout_ms for member in self.by_id.values())])

    # Coming and going

    def add(self, member: ClassicMember) -> None:
        if member.instance_id is not None:
            self.by_instance[member.instance_id] = member.member_id
        self.by_id[member.member_id] = member
        if self.leader is None:
            self.leader = member.member_id
        self._count_protocols(member, 1)
        self._joining += member.is_joining
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Forget an id, pending or a member's; whoever waits for the member's answer has to be told by the caller."""
        member = self.by_id.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            self._joining -= member.is_joining
            if member.instance_id is not None:
                del self.by_instance[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.by_id), None)
        self.pending.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        return member

    def await_return(self, member_id: str) -> str | None:
        """Give out an id. With too many of them about, the oldest is void; it is returned."""
        self.pending[member_id] = None
        if len(self.pending) <= PENDING_LIMIT:
            return None
        oldest = next(iter(self.pending))
        del self.pending[oldest]
        return oldest

    def rename(self, old: ClassicMember, new_id: str) -> ClassicMember:
        """A static member came back: what is known of it belongs to another id now. Nobody waits for its answers."""
        new = ClassicMember(
            new_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        was_leader = self.leader == old.member_id
        self.remove(old.member_id)
        self.add(new)
        if was_leader:
            self.leader = new_id
        return new

    def update(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    # Waiting for the next generation

    def await_join(self, member: ClassicMember, promise: Promise[JoinGroupResponse]) -> None:
        self._joining += not member.is_joining
        member.waiting_joins = one_more(member.waiting_joins, promise)

    def take_joins(self, member: ClassicMember) -> list[Promise[JoinGroupResponse]]:
        """Those who wait for the member's answer, which do not wait any more."""
        waiting, member.waiting_joins = member.waiting_joins, []
        self._joining -= bool(waiting)
        return waiting

    def elect_joined_leader(self) -> bool:
        """Have a leader that has joined; False if nobody has."""
        leader = None if self.leader is None else self.by_id[self.leader]
        if leader is None or leader.is_joining:
            return leader is not None
        self.leader = next((member.member_id for member in self.by_id.values() if member.is_joining), self.leader)
        return self._joining > 0

    # Agreeing on a protocol

    def agree_with(self, protocols: Protocols) -> bool:
        """Whether one of these is known to every member."""
        return any(self._known_to.get(name, 0) == len(self.by_id) for name, _ in protocols)

    def elected_protocol(self) -> str:
        """What most members prefer among what all of them know."""
        candidates = {name for name, count in self._known_to.items() if count == len(self.by_id)}
        votes: dict[str, int] = {}
        for member in self.by_id.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def _count_protocols(self, member: ClassicMember, change: int) -> None:
        for name in member.protocol_names:
            count = self._known_to.get(name, 0) + change
            if count:
                self._known_to[name] = count
            else:
                self._known_to.pop(name, None)
