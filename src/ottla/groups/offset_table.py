"""How far groups have read: what was committed, and what waits for its transaction to end.

What must stay true:
- Whatever is here follows from the records alone, in their order.
- Of a commit in a transaction and one outside of it, the later in the log counts, whenever the transaction ends:
  compaction may have taken the earlier one by the time of the next load.
- A tombstone also takes what is pending: the transaction that ends later brings nothing back.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.protocol.uuids import ZERO_UUID

NO_EXPIRY = -1

Offsets = dict[str, dict[int, "CommittedOffset"]]
"""By topic and partition."""


class CommittedOffset(NamedTuple):
    """`record_offset` is where the log says so; `expire_timestamp_ms` is there where a client set it itself.

    The topic's id tells a topic from another of its name; it is zero where nobody said.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    record_offset: int
    topic_id: bytes = ZERO_UUID


class OffsetTable:
    """The offsets of all groups of one partition. `size` counts the committed ones."""

    def __init__(self) -> None:
        self.size = 0
        self._committed: dict[str, Offsets] = {}
        self._pending: dict[int, dict[str, Offsets]] = {}
        self._writers: dict[str, dict[int, None]] = {}

    # Looking

    def of_group(self, group_id: str) -> Offsets:
        """What a group has committed. To be looked at only, and not beyond the current turn of the loop."""
        return self._committed.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._committed.get(group_id, {}).get(topic, {}).get(partition)

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset of the group for a partition."""
        return any(
            partition in self._pending[producer_id].get(group_id, {}).get(topic, {})
            for producer_id in self._writers.get(group_id, ())
        )

    def is_in_transaction(self, group_id: str) -> bool:
        return group_id in self._writers

    def partitions_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Everything a group has committed or is about to, once each."""
        found = {
            (topic, partition): None
            for offsets in (self.of_group(group_id), *self._pending_of(group_id))
            for topic, partitions in offsets.items()
            for partition in partitions
        }
        return iter(found)

    def partitions_of_topics(self, topics: Mapping[str, frozenset[bytes]]) -> Iterator[tuple[str, str, int]]:
        """Group, topic and partition of every offset, committed or pending, of some topics, by name and ids."""
        for group_id in list(dict.fromkeys([*self._committed, *self._writers])):
            found: dict[tuple[str, str, int], None] = {}
            for offsets in (self.of_group(group_id), *self._pending_of(group_id)):
                for topic in topics.keys() & offsets.keys():
                    for partition, value in offsets[topic].items():
                        if value.topic_id == ZERO_UUID or value.topic_id in topics[topic]:
                            found[group_id, topic, partition] = None
            yield from sorted(found)

    def _pending_of(self, group_id: str) -> Iterator[Offsets]:
        for producer_id in self._writers.get(group_id, ()):
            yield self._pending[producer_id].get(group_id, {})

    # Replaying

    def put(self, group_id: str, topic: str, partition: int, value: CommittedOffset) -> None:
        partitions = self._committed.setdefault(group_id, {}).setdefault(topic, {})
        self.size += partition not in partitions
        partitions[partition] = value

    def put_pending(self, producer_id: int, group_id: str, topic: str, partition: int, value: CommittedOffset) -> None:
        groups = self._pending.setdefault(producer_id, {})
        groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = value
        self._writers.setdefault(group_id, {})[producer_id] = None

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        for offsets in self._pending_of(group_id):
            _remove(offsets, topic, partition)
        committed = self._committed.get(group_id)
        if committed is not None:
            self.size -= _remove(committed, topic, partition)
            if not committed:
                del self._committed[group_id]

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        for group_id, offsets in self._pending.pop(producer_id, {}).items():
            writers = self._writers[group_id]
            del writers[producer_id]
            if not writers:
                del self._writers[group_id]
            if is_commit:
                self._take_over(group_id, offsets)

    def _take_over(self, group_id: str, offsets: Offsets) -> None:
        for topic, partitions in offsets.items():
            for partition, value in partitions.items():
                present = self.get(group_id, topic, partition)
                if present is None or value.record_offset > present.record_offset:
                    self.put(group_id, topic, partition, value)


def _remove(offsets: Offsets, topic: str, partition: int) -> bool:
    partitions = offsets.get(topic)
    if partitions is None or partitions.pop(partition, None) is None:
        return False
    if not partitions:
        del offsets[topic]
    return True
