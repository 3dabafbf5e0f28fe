"""A consumer group: what its records say, and what follows from them.

Only `replay` methods change it. Counts (of assignors, names, expressions) are kept along, so that a heartbeat never
looks at all members.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from ottla.groups.consumer.assignors import Assignment
from ottla.groups.consumer.member import ConsumerMember, GivenPartitions, MemberState
from ottla.groups.consumer.reconciliation import UNOWNED
from ottla.groups.consumer.tombstones import group_tombstones
from ottla.groups.group import CONSUMER, Committer, PartitionCheck
from ottla.ledger.entries import Entry
from ottla.protocol.errors import ErrorCode, KafkaError

EMPTY, ASSIGNING, RECONCILING, STABLE = "Empty", "Assigning", "Reconciling", "Stable"
CONSUMER_PROTOCOL_TYPE = "consumer"
COMMIT_OF_MEMBERS_SINCE_VERSION = 9
FIRST_EPOCH = 1
NEVER_MS = -(2**63)


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that an expression stands for, and when that was looked up."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    timestamp_ms: int = NEVER_MS


class Counter(dict[str, int]):
    """How often each name is in use; those that are not in use are not there."""

    def change(self, name: str, by: int) -> None:
        count = self.get(name, 0) + by
        if count > 0:
            self[name] = count
        else:
            self.pop(name, None)


class ConsumerGroup:
    """`by_name` and `by_regex` count the members, and the expressions, through which topics are read.

    A group begins with the first epoch and nothing assigned in it: a member whose epoch is 0 is one that joins.
    """

    kind = CONSUMER
    protocol_type = CONSUMER_PROTOCOL_TYPE

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.has_partition_metadata = False
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.targets: dict[str, Assignment] = {}
        self.by_name = Counter()
        self.by_regex = Counter()
        self.regexes = Counter()
        self.resolved: dict[str, ResolvedRegex] = {}
        self.server_assignors = Counter()
        self.classic_protocols = Counter()
        self.classic_member_count = 0
        self._owners: dict[tuple[bytes, int], tuple[str, int]] = {}

    # Replaying

    def put_member(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._count(old, -1)
            self._release(old)
        self.members[member.member_id] = member
        self._count(member, 1)
        self._own(member, member.assigned)
        self._own(member, member.pending_revocation)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member, -1)
        self._release(member)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _count(self, member: ConsumerMember, by: int) -> None:
        for name in member.topic_names:
            self.by_name.change(name, by)
        if member.topic_regex:
            self.regexes.change(member.topic_regex, by)
        if member.server_assignor is not None:
            self.server_assignors.change(member.server_assignor, by)
        if member.classic is not None:
            self.classic_member_count += by
            for protocol in member.classic.supported_protocols:
                self.classic_protocols.change(protocol.name, by)

    def _own(self, member: ConsumerMember, partitions: GivenPartitions) -> None:
        for topic_id, given in partitions.items():
            for index in given:
                self._owners[topic_id, index] = (member.member_id, member.member_epoch)

    def _release(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, given in partitions.items():
                for index in given:
                    if self._owners.get((topic_id, index), ("", 0))[0] == member.member_id:
                        del self._owners[topic_id, index]

    def put_resolved(self, regex: str, resolved: ResolvedRegex | None) -> None:
        old = self.resolved.pop(regex, None)
        for name in old.topics if old is not None else ():
            self.by_regex.change(name, -1)
        if resolved is not None:
            self.resolved[regex] = resolved
            for name in resolved.topics:
                self.by_regex.change(name, 1)

    # Looking

    @property
    def state_name(self) -> str:
        if not self.members:
            return EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> ConsumerMember:
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of group {self.group_id}")
        return found

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None) -> Assignment:
        """A static member that comes back under a new id has the target of its predecessor."""
        if instance_id is not None:
            member_id = self.static_members.get(instance_id, member_id)
        return self.targets.get(member_id, {})

    def owner_epoch(self, topic_id: bytes, index: int) -> int:
        owner = self._owners.get((topic_id, index))
        return UNOWNED if owner is None else owner[1]

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """What a member subscribes to by name and by expression; one that is not looked up yet stands for nothing."""
        resolved = self.resolved.get(member.topic_regex)
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def preferred_assignor(self, changes: Iterable[tuple[ConsumerMember, int]] = ()) -> str | None:
        """The one that most members ask for; among equals, the first by name."""
        counts = Counter(self.server_assignors)
        for member, by in changes:
            if member.server_assignor is not None:
                counts.change(member.server_assignor, by)
        return min(counts, key=lambda name: (-counts[name], name), default=None)

    def waits_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether there is something in the member's target that others still have."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        return any(
            index not in member.assigned.get(topic_id, ()) and self.owner_epoch(topic_id, index) != UNOWNED
            for topic_id, partitions in self.targets.get(member.member_id, {}).items()
            for index in partitions
        )

    # As any group (see `groups.group`)

    def check_commit(self, committer: Committer, *, is_transactional: bool, api_version: int) -> PartitionCheck | None:
        """An epoch older than the member's is good for the partitions that it had in it already (KIP-1251)."""
        if committer.epoch < 0 and not self.members:
            return None
        if is_transactional and committer == Committer():
            return None
        member = self.member(committer.member_id)
        if not is_transactional and not member.uses_classic_protocol and api_version < COMMIT_OF_MEMBERS_SINCE_VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"members of consumer groups commit with version {COMMIT_OF_MEMBERS_SINCE_VERSION} or newer",
            )
        if committer.epoch > member.member_epoch:
            raise self._stale(member, f"epoch {committer.epoch} is ahead of the member's, {member.member_epoch}")
        if committer.epoch == member.member_epoch:
            return None
        return partial(self._check_partition, member, committer.epoch)

    def _check_partition(self, member: ConsumerMember, epoch: int, topic: str, topic_id: bytes, index: int) -> None:
        given = member.epoch_given(topic_id, index)
        if given is None:
            raise self._stale(member, f"{topic}-{index} is not the member's")
        if epoch < given:
            raise self._stale(member, f"{topic}-{index} became the member's in epoch {given}, after {epoch}")

    def commit_happened(self, committer: Committer, now_ms: int) -> None:
        """Only heartbeats keep a member alive here."""

    def check_fetch(self, committer: Committer) -> None:
        if not committer.member_id and committer.epoch < 0:
            return
        member = self.member(committer.member_id)
        if committer.epoch != member.member_epoch:
            raise self._stale(member, f"epoch {committer.epoch} came, the member is at {member.member_epoch}")

    def _stale(self, member: ConsumerMember, problem: str) -> KafkaError:
        classic = member.uses_classic_protocol
        code = ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH
        return KafkaError(code, f"member {member.member_id} of group {self.group_id}: {problem}")

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} has {len(self.members)} members")

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.by_name or topic in self.by_regex

    def offset_expiry_base_ms(self, commit_timestamp: int) -> int | None:
        return commit_timestamp

    def tombstones(self) -> list[Entry]:
        return group_tombstones(self.group_id, sorted(self.members), sorted(self.resolved))
