"""Offsets of groups: committing, fetching, deleting and forgetting them.

| who commits                     | may do so                                                                      |
|---------------------------------|--------------------------------------------------------------------------------|
| a member                        | if its group says so: the right generation or epoch, no rebalance under way    |
| nobody in particular, epoch -1  | if the group has no members; the commit makes the group, if there is none      |
| a transaction                   | as above; what it commits counts once the transaction is committed             |

A group that has only offsets is a `SimpleGroup`. It stays after its last offset until it is deleted or found empty by
the check for what expired.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ottla.groups.context import GroupContext
from ottla.groups.entries import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.groups.group import CLASSIC, Committer, Group, PartitionCheck
from ottla.groups.offset_table import NO_EXPIRY, CommittedOffset, OffsetTable
from ottla.groups.simple import SimpleGroup
from ottla.ledger import Decision, Entry, Replayed, Timers, Writer
from ottla.ledger.machine import NO_PRODUCER_ID
from ottla.log.config_keys import INT64_MAX
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.uuids import ZERO_UUID

NO_OFFSET = -1
NO_EPOCH = -1
DEFAULT_RETENTION = -1
NO_IDS: Mapping[str, bytes] = {}
GROUP_ID_NOT_FOUND_SINCE_VERSION = 9
CONSUMER_PROTOCOL_TYPE = "consumer"
EXPIRY_TIMER = "offsets that expire"
FORGET_TIMER = "offsets of deleted topics"
# What is written, and the last version that has a time of its own to expire.
VALUE_VERSION = 4
VALUE_VERSION_WITH_EXPIRY = 1
# What one decision looks at, and writes, before others have their turn.
OFFSETS_AT_ONCE = 1_000


class OffsetToCommit(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    topic_id: bytes = ZERO_UUID


class FetchedOffset(NamedTuple):
    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


FetchedTopics = list[tuple[str, list[FetchedOffset]]]


class GroupOffsets:
    """See the module. `groups` are those with members, which others keep."""

    def __init__(self, context: GroupContext, timers: Timers, groups: dict[str, Group]) -> None:
        self.table = OffsetTable()
        self._context = context
        self._timers = timers
        self._groups = groups
        self._simple: dict[str, SimpleGroup] = {}
        self._to_check: deque[str] = deque()
        self._gone_topics: dict[str, frozenset[bytes]] = {}
        self._is_loaded = False

    # Groups, whether they have members or not

    def group(self, group_id: str) -> Group | None:
        group = self._groups.get(group_id)
        return self._simple.get(group_id) if group is None else group

    def all_groups(self) -> Iterator[Group]:
        yield from self._groups.values()
        for group_id, simple in self._simple.items():
            if group_id not in self._groups:
                yield simple

    def _known(self, group_id: str) -> Group:
        group = self.group(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
        return group

    # Committing

    def commit(
        self,
        group_id: str,
        committer: Committer,
        wanted: Sequence[OffsetToCommit],
        *,
        api_version: int,
        retention_ms: int = DEFAULT_RETENTION,
    ) -> Decision[list[ErrorCode]]:
        """One code for each offset, in order."""
        group = self.group(group_id)
        if group is None and committer.epoch >= 0:
            is_new = api_version >= GROUP_ID_NOT_FOUND_SINCE_VERSION
            code = ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
            raise KafkaError(code, f"there is no group {group_id}")
        now_ms = self._context.clock.now_ms()
        check = None
        if group is not None:
            check = group.check_commit(committer, is_transactional=False, api_version=api_version)
            group.commit_happened(committer, now_ms)
        expires_ms = NO_EXPIRY if retention_ms == DEFAULT_RETENTION else min(now_ms + retention_ms, INT64_MAX)
        codes, entries = self._entries(group_id, wanted, check, now_ms, expires_ms)
        self._context.counts.offset_commits += len(entries)
        return Decision(codes, entries)

    def commit_in_transaction(
        self,
        group_id: str,
        committer: Committer,
        writer: Writer,
        wanted: Sequence[OffsetToCommit],
        *,
        api_version: int,
    ) -> Decision[list[ErrorCode]]:
        """The same, to be counted when the writer's transaction is committed."""
        group = self.group(group_id)
        if group is None and committer.epoch >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {group_id}")
        now_ms = self._context.clock.now_ms()
        try:
            check = (
                None if group is None else group.check_commit(committer, is_transactional=True, api_version=api_version)
            )
            codes, entries = self._entries(group_id, wanted, check, now_ms, NO_EXPIRY)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                # Producers know the errors of classic groups only.
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error
            raise
        self._context.counts.offset_commits += len(entries)
        return Decision(codes, entries, writer)

    def _entries(
        self,
        group_id: str,
        wanted: Sequence[OffsetToCommit],
        check: PartitionCheck | None,
        now_ms: int,
        expires_ms: int,
    ) -> tuple[list[ErrorCode], list[Entry]]:
        max_units = self._context.settings().offset_metadata_max_bytes
        version = VALUE_VERSION if expires_ms == NO_EXPIRY else VALUE_VERSION_WITH_EXPIRY
        codes: list[ErrorCode] = []
        entries: list[Entry] = []
        for topic, partition, offset, leader_epoch, metadata, topic_id in wanted:
            if metadata is not None and _is_longer(metadata, max_units):
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            if check is not None:
                check(topic, topic_id, partition)
            codes.append(ErrorCode.NONE)
            value = OffsetCommitValue(
                offset=offset,
                leader_epoch=leader_epoch,
                metadata=metadata or "",
                commit_timestamp=now_ms,
                expire_timestamp=expires_ms,
                topic_id=topic_id,
            )
            entries.append(Entry(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value, version))
        return codes, entries

    # Fetching

    def fetch(
        self,
        group_id: str,
        reader: Committer | None,
        wanted: Sequence[tuple[str, Sequence[int]]] | None,
        *,
        is_stable: bool,
        topic_ids: Mapping[str, bytes] = NO_IDS,
    ) -> FetchedTopics:
        """The offsets of some partitions, or of all that the group has; `reader` is a member that says who it is.

        Where ids are given, what was committed for another topic of that name is not there. With `is_stable`, an
        offset that an open transaction is about to change is an error to come back with.
        """
        group = self.group(group_id)
        if group is not None and reader is not None:
            group.check_fetch(reader)
        offsets = self.table.of_group(group_id)
        if wanted is None:
            wanted = [(topic, sorted(partitions)) for topic, partitions in sorted(offsets.items())]
        is_uncertain = is_stable and self.table.is_in_transaction(group_id)
        answer: FetchedTopics = []
        for topic, partitions in wanted:
            committed = offsets.get(topic, {})
            asked_id = topic_ids.get(topic, ZERO_UUID)
            fetched: list[FetchedOffset] = []
            for partition in partitions:
                value = committed.get(partition)
                if is_uncertain and self.table.has_pending(group_id, topic, partition):
                    fetched.append(FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT))
                elif value is None or _is_of_another(value, asked_id):
                    fetched.append(FetchedOffset(partition))
                else:
                    fetched.append(FetchedOffset(partition, value.offset, value.leader_epoch, value.metadata))
            answer.append((topic, fetched))
        return answer

    # Deleting

    def delete(self, group_id: str, wanted: Sequence[tuple[str, int]]) -> Decision[list[ErrorCode]]:
        """Delete offsets of topics that the group does not read; one code for each, in order."""
        group = self._known(group_id)
        if group.kind == CLASSIC and not group.is_empty and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"nobody knows which topics the group {group_id} reads")
        codes: list[ErrorCode] = []
        entries: list[Entry] = []
        for topic, partition in wanted:
            if group.is_subscribed(topic):
                codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            codes.append(ErrorCode.NONE)
            if self.table.get(group_id, topic, partition) or self.table.has_pending(group_id, topic, partition):
                entries.append(_tombstone(group_id, topic, partition))
        self._context.counts.offset_deletions += len(entries)
        return Decision(codes, entries)

    def delete_group(self, group_id: str) -> Decision[None]:
        """Delete a group without members, and its offsets with it."""
        group = self._known(group_id)
        group.check_delete()
        entries = [_tombstone(group_id, *place) for place in self.table.partitions_of(group_id)]
        return Decision(None, [*entries, *group.tombstones()], is_atomic=False)

    # Forgetting

    def topics_deleted(self, topics: Mapping[str, frozenset[bytes]]) -> None:
        """Offsets of deleted topics, by name and ids, go; those that are still being loaded when they are there."""
        for name, topic_ids in topics.items():
            self._gone_topics[name] = self._gone_topics.get(name, frozenset()) | topic_ids
        if self._is_loaded:
            self._timers.schedule(FORGET_TIMER, 0, self._forget)

    def _forget(self) -> Decision[None]:
        gone, self._gone_topics = self._gone_topics, {}
        entries: list[Entry] = []
        for place in self.table.partitions_of_topics(gone):
            if len(entries) == OFFSETS_AT_ONCE:
                self.topics_deleted(gone)
                break
            entries.append(_tombstone(*place))

        def written(error: KafkaError | None) -> None:
            if error is not None:
                self.topics_deleted(gone)

        return Decision(None, entries, written=written)

    def _check_expired(self) -> Decision[None]:
        """Some groups now, the others in later turns; then all of them again after an interval."""
        settings = self._context.settings()
        if not self._to_check:
            self._to_check.extend(dict.fromkeys([*self._groups, *self._simple]))
        entries: list[Entry] = []
        looked_at = 0
        while self._to_check and looked_at < OFFSETS_AT_ONCE:
            group = self.group(self._to_check.popleft())
            if group is not None:
                looked_at += 1 + sum(map(len, self.table.of_group(group.group_id).values()))
                entries += self._expired(group, settings.offsets_retention_ms)
        delay_ms = 0 if self._to_check else settings.offsets_retention_check_interval_ms
        self._timers.schedule(EXPIRY_TIMER, delay_ms, self._check_expired)
        return Decision(None, entries, is_atomic=False)

    def _expired(self, group: Group, retention_ms: int) -> Iterator[Entry]:
        """The offsets that a group has not touched for too long, and the group itself once nothing is left of it."""
        now_ms = self._context.clock.now_ms()
        group_id = group.group_id
        is_all = True
        for topic, partitions in self.table.of_group(group_id).items():
            is_subscribed = group.is_subscribed(topic)
            for partition, value in partitions.items():
                if (
                    not is_subscribed
                    and _is_expired(group, value, retention_ms, now_ms)
                    and not self.table.has_pending(group_id, topic, partition)
                ):
                    self._context.counts.offset_expirations += 1
                    yield _tombstone(group_id, topic, partition)
                else:
                    is_all = False
        if is_all and group.is_empty and not self.table.is_in_transaction(group_id):
            yield from group.tombstones()

    # Replaying

    def replay(self, record: Replayed) -> None:
        key, value = record.entry.key, record.entry.value
        if isinstance(key, GroupMetadataKey | ConsumerGroupMetadataKey):
            if value is None:
                self._simple.pop(key.group if isinstance(key, GroupMetadataKey) else key.group_id, None)
            return
        assert isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey)
        if value is None:
            self.table.remove(key.group, key.topic, key.partition)
            return
        assert isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue)
        if key.group not in self._simple:
            self._simple[key.group] = SimpleGroup(key.group)
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch if isinstance(value, OffsetCommitValue) else NO_EPOCH,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp if isinstance(value, OffsetCommitValue) else NO_EXPIRY,
            record.offset,
            value.topic_id if isinstance(value, OffsetCommitValue) else ZERO_UUID,
        )
        if record.producer_id == NO_PRODUCER_ID:
            self.table.put(key.group, key.topic, key.partition, committed)
        else:
            self.table.put_pending(record.producer_id, key.group, key.topic, key.partition, committed)

    def loaded(self) -> None:
        self._is_loaded = True
        self._timers.schedule(
            EXPIRY_TIMER, self._context.settings().offsets_retention_check_interval_ms, self._check_expired
        )
        if self._gone_topics:
            self._timers.schedule(FORGET_TIMER, 0, self._forget)

    def unload(self, error: KafkaError) -> None:
        """Nobody waits for offsets longer than for their records."""


def _is_of_another(value: CommittedOffset, topic_id: bytes) -> bool:
    return topic_id != ZERO_UUID and value.topic_id not in (ZERO_UUID, topic_id)


def _is_longer(text: str, max_units: int) -> bool:
    """Whether Java would count more than `max_units` characters."""
    return len(text) * 2 > max_units and len(text.encode("utf-16-be", "surrogatepass")) > max_units * 2


def _is_expired(group: Group, value: CommittedOffset, retention_ms: int, now_ms: int) -> bool:
    base_ms = group.offset_expiry_base_ms(value.commit_timestamp_ms)
    if base_ms is None:
        return False
    if value.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= value.expire_timestamp_ms
    return now_ms - base_ms >= retention_ms


def _tombstone(group_id: str, topic: str, partition: int) -> Entry:
    return Entry(OffsetCommitKey(group=group_id, topic=topic, partition=partition))
