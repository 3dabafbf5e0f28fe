"""Groups that only commit offsets: their consumers choose partitions themselves and are members of nothing.

To clients and tools they are classic groups without a protocol type, always empty.
"""

from dataclasses import dataclass

from ottla.groups.entries import GroupMetadataKey
from ottla.groups.group import CLASSIC, Committer
from ottla.ledger import Entry
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.describe_groups import DescribedGroup

EMPTY = "Empty"


@dataclass(frozen=True, slots=True)
class SimpleGroup:
    group_id: str

    @property
    def kind(self) -> str:
        return CLASSIC

    @property
    def protocol_type(self) -> str:
        return ""

    @property
    def state_name(self) -> str:
        return EMPTY

    @property
    def is_empty(self) -> bool:
        return True

    def check_commit(self, committer: Committer, *, is_transactional: bool, api_version: int) -> None:
        if committer.epoch >= 0:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"the group {self.group_id} has no members")

    def commit_happened(self, committer: Committer, now_ms: int) -> None:
        pass

    def check_fetch(self, committer: Committer) -> None:
        pass

    def check_delete(self) -> None:
        pass

    def is_subscribed(self, topic: str) -> bool:
        return False

    def offset_expiry_base_ms(self, commit_timestamp: int) -> int | None:
        return commit_timestamp

    def tombstones(self) -> list[Entry]:
        return [Entry(GroupMetadataKey(group=self.group_id))]

    def describe(self) -> DescribedGroup:
        return DescribedGroup(group_id=self.group_id, group_state=EMPTY)
