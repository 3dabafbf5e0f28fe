"""What a group is to those who do not care of which kind it is: commits, listings and deletions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ottla.ledger.entries import Entry
from ottla.protocol.messages.describe_groups import DescribedGroup

PartitionCheck = Callable[[str, bytes, int], None]
"""Given the name and the id of a topic and a partition, raises unless that one may be committed."""

CLASSIC = "classic"
CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class Committer:
    """Who commits or fetches offsets: a member of the group as it sees itself, or nobody in particular.

    `epoch` is the generation of a classic group or the member's epoch in a consumer group, -1 outside of groups.
    """

    member_id: str = ""
    instance_id: str | None = None
    epoch: int = -1


class Group(Protocol):
    """One group. What is asked here changes nothing; refusals are KafkaErrors with the code that the client gets."""

    @property
    def group_id(self) -> str: ...

    @property
    def kind(self) -> str:
        """`classic` or `consumer`."""
        ...

    @property
    def protocol_type(self) -> str:
        """`consumer` for consumers of both kinds; what members said, for other users of classic groups."""
        ...

    @property
    def state_name(self) -> str:
        """As Kafka's tools print it: Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, Stable."""
        ...

    @property
    def is_empty(self) -> bool:
        """No members: it may be deleted, and its offsets expire."""
        ...

    def check_commit(self, committer: Committer, *, is_transactional: bool, api_version: int) -> PartitionCheck | None:
        """Raise unless this client may commit offsets now; a check of each partition where that depends on it."""
        ...

    def commit_happened(self, committer: Committer, now_ms: int) -> None:
        """A commit of a member is a sign of life in a classic group."""
        ...

    def check_fetch(self, committer: Committer) -> None:
        """Raise when a member that says who it is asks for offsets and is not who it thinks it is."""
        ...

    def check_delete(self) -> None:
        """Raise unless the whole group may be deleted now."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether members read this topic: its offsets may not be deleted then, and do not expire."""
        ...

    def offset_expiry_base_ms(self, commit_timestamp: int) -> int | None:
        """From when on a committed offset ages; None while it does not, because the group is in use."""
        ...

    def tombstones(self) -> list[Entry]:
        """What deletes the group, without its offsets."""
        ...


@runtime_checkable
class DescribedByMembers(Group, Protocol):
    """A group that DescribeGroups can tell of: classic ones, also those that never had a member."""

    def describe(self) -> DescribedGroup:
        """The group and its members; nothing is filled in of what the client may do."""
        ...
