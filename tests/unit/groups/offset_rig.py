"""A partition of `__consumer_offsets` on a disk in memory, with its machine."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from tests.unit.replication.rig import Rig

from ottla.cluster.image import ClusterImage
from ottla.groups.context import GroupContext
from ottla.groups.entries import GROUP_RECORD_TYPES
from ottla.groups.group import Committer, PartitionCheck
from ottla.groups.machine import GroupMachine
from ottla.groups.offsets import FetchedOffset, OffsetToCommit
from ottla.groups.settings import GroupSettings
from ottla.ledger import Entry, Ledger, Writer
from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.uuids import ZERO_UUID
from ottla.replication.partition import Partition
from ottla.runtime.promise import Promise
from ottla.testing import SeededIds

Value = TypeVar("Value")

NEWEST = 10
NOBODY = Committer()


class GroupRig(Rig):
    """`start` is the broker's start, and `restart` another one on the same log."""

    ledger: Ledger[GroupMachine]
    held: Partition

    def __init__(self, **settings: int) -> None:
        super().__init__()
        self.settings = replace(GroupSettings(), **settings)  # type: ignore[arg-type]  # tests set numbers only
        self.context = GroupContext(self.clock, SeededIds(1), lambda: self.settings, ClusterImage)

    async def start(self) -> None:
        self.held = await self.partition(LogConfig(cleanup_policy=("compact",)))
        await self.restart()

    async def restart(self) -> None:
        ledger: Ledger[GroupMachine] = Ledger(self.held, GROUP_RECORD_TYPES, self.clock, self.executor)
        ledger.machine = GroupMachine(self.context, ledger)
        await ledger.load()
        self.ledger = ledger

    @property
    def machine(self) -> GroupMachine:
        return self.ledger.machine

    def commit(
        self,
        group_id: str,
        *wanted: OffsetToCommit,
        committer: Committer = NOBODY,
        api_version: int = NEWEST,
        retention_ms: int = -1,
    ) -> list[ErrorCode]:
        offsets = self.machine.offsets
        return result(
            self.ledger.write(
                lambda: offsets.commit(group_id, committer, wanted, api_version=api_version, retention_ms=retention_ms)
            )
        )

    def commit_in_transaction(
        self, group_id: str, producer_id: int, *wanted: OffsetToCommit, committer: Committer = NOBODY
    ) -> list[ErrorCode]:
        offsets = self.machine.offsets
        writer = Writer(producer_id, 0)
        return result(
            self.ledger.write(lambda: offsets.commit_in_transaction(group_id, committer, writer, wanted, api_version=5))
        )

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        result(self.ledger.end_transaction(Writer(producer_id, 0), 0, is_commit=is_commit))

    def delete(self, group_id: str, *places: tuple[str, int]) -> list[ErrorCode]:
        return result(self.ledger.write(lambda: self.machine.offsets.delete(group_id, places)))

    def delete_group(self, group_id: str) -> None:
        result(self.ledger.write(lambda: self.machine.offsets.delete_group(group_id)))

    def fetch(self, group_id: str, topic: str, partition: int, *, is_stable: bool = False) -> FetchedOffset:
        wanted = [(topic, [partition])]
        offsets = self.machine.offsets
        found = result(self.ledger.read(lambda: offsets.fetch(group_id, None, wanted, is_stable=is_stable)))
        ((_, (fetched,)),) = found
        return fetched

    def group_ids(self) -> list[str]:
        return sorted(group.group_id for group in self.machine.all_groups())


def result(promise: Promise[Value]) -> Value:
    assert promise.done(), "nothing has to be waited for here"
    return promise.result()


def offset(
    topic: str,
    partition: int,
    offset: int,
    epoch: int = -1,
    metadata: str | None = "",
    topic_id: bytes = ZERO_UUID,
) -> OffsetToCommit:
    return OffsetToCommit(topic, partition, offset, epoch, metadata, topic_id)


def code_of(error: BaseException) -> ErrorCode:
    assert isinstance(error, KafkaError)
    return error.code


class Members:
    """A group with members that read `topics`, of a kind that a test chooses."""

    def __init__(self, group_id: str, kind: str = "classic", protocol_type: str = "consumer") -> None:
        self.group_id = group_id
        self.kind = kind
        self.protocol_type = protocol_type
        self.state_name = "Stable"
        self.is_empty = False
        self.topics: set[str] = set()
        self.refusal: KafkaError | None = None
        self.refused_partition: int | None = None
        self.committed: list[Committer] = []
        self.emptied_ms: int | None = None

    def check_commit(self, committer: Committer, *, is_transactional: bool, api_version: int) -> PartitionCheck | None:
        if self.refusal is not None:
            raise self.refusal
        return None if self.refused_partition is None else self.check_partition

    def check_partition(self, topic: str, topic_id: bytes, partition: int) -> None:
        if partition == self.refused_partition:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    def commit_happened(self, committer: Committer, now_ms: int) -> None:
        self.committed.append(committer)

    def check_fetch(self, committer: Committer) -> None:
        if self.refusal is not None:
            raise self.refusal

    def check_delete(self) -> None:
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.topics

    def offset_expiry_base_ms(self, commit_timestamp: int) -> int | None:
        return self.emptied_ms if self.is_empty else commit_timestamp if self.topics else None

    def tombstones(self) -> list[Entry]:
        return []


def run(scenario: Callable[[GroupRig], Awaitable[None]], **settings: int) -> None:
    async def whole() -> None:
        rig = GroupRig(**settings)
        await rig.start()
        await scenario(rig)

    asyncio.run(whole())
