"""Offsets of partitions (first, last, by time), and the deletion of records before one."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import IntEnum

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Outcomes
from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results
from ottla.client.errors import InvalidRequest, OttlaError
from ottla.client.times import milliseconds_of
from ottla.client.types import OffsetAndTimestamp, TopicPartition
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

CLIENT = -1
NO_OFFSET = -1
ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}


class OffsetSpec(IntEnum):
    """What to look for. A number of milliseconds since 1970, or a `datetime`, looks for the first record that is not
    older."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


class DeleteBefore(IntEnum):
    """In place of an offset: delete everything that is in the partition now."""

    END = -1


class OffsetsAdmin(AdminPart):
    async def list_offsets(
        self,
        partitions: Mapping[tuple[str, int], OffsetSpec | int | datetime] | Iterable[tuple[str, int]],
        *,
        isolation_level: str = "read_uncommitted",
        timeout: float | None = None,
    ) -> Results[TopicPartition, OffsetAndTimestamp | None]:
        """The offset that each partition has for what is asked; the latest where only partitions are given.

        None where no record fits, as with a time that is later than all records. With `read_committed`, the latest is
        the end of what has been decided: open transactions are not in it.

            ends = await admin.list_offsets([("orders", 0)])
            week = await admin.list_offsets({("orders", 0): datetime.now(UTC) - timedelta(days=7)})
        """
        if isolation_level not in ISOLATION_LEVELS:
            raise InvalidRequest(
                f"isolation_level is {isolation_level!r}: it must be read_uncommitted or read_committed"
            )
        given = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions, OffsetSpec.LATEST)
        wanted = {TopicPartition(*partition): _milliseconds(spec) for partition, spec in given.items()}
        call = self._call(timeout)

        async def ask(
            node_id: int, keys: Sequence[TopicPartition]
        ) -> Outcomes[TopicPartition, OffsetAndTimestamp | None]:
            topics: dict[str, list[ListOffsetsPartition]] = {}
            for key in keys:
                question = ListOffsetsPartition(partition_index=key.partition, timestamp=wanted[key])
                topics.setdefault(key.topic, []).append(question)
            request = ListOffsetsRequest(
                replica_id=CLIENT,
                isolation_level=ISOLATION_LEVELS[isolation_level],
                topics=[ListOffsetsTopic(name=name, partitions=questions) for name, questions in topics.items()],
                timeout_ms=call.attempt_ms(),
            )
            answer = await call.to(node_id, request, ListOffsetsResponse)
            return {
                (key := TopicPartition(topic.name, partition.partition_index)): _found(key, partition)
                for topic in answer.topics
                for partition in topic.partitions
            }

        return await call.settle(wanted, lambda keys: call.by_leader(keys, ask), is_patient=True)

    async def delete_records(
        self, before: Mapping[tuple[str, int], int], *, timeout: float | None = None
    ) -> Results[TopicPartition, int]:
        """Delete all records below an offset, or all there are (`DeleteBefore.END`); the value of each partition is
        its first offset from now on."""
        wanted = {TopicPartition(*partition): offset for partition, offset in before.items()}
        call = self._call(timeout)

        async def ask(node_id: int, keys: Sequence[TopicPartition]) -> Outcomes[TopicPartition, int]:
            topics: dict[str, list[DeleteRecordsPartition]] = {}
            for key in keys:
                order = DeleteRecordsPartition(partition_index=key.partition, offset=wanted[key])
                topics.setdefault(key.topic, []).append(order)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name, partitions=orders) for name, orders in topics.items()],
                timeout_ms=call.attempt_ms(),
            )
            answer = await call.to(node_id, request, DeleteRecordsResponse)
            return {
                (key := TopicPartition(topic.name, result.partition_index)): failure(result.error_code, None, key)
                if result.error_code
                else result.low_watermark
                for topic in answer.topics
                for result in topic.partitions
            }

        return await call.settle(wanted, lambda keys: call.by_leader(keys, ask), is_patient=True)


def _milliseconds(spec: OffsetSpec | int | datetime) -> int:
    if isinstance(spec, datetime):
        if spec.tzinfo is None:
            raise InvalidRequest(f"{spec}: a datetime needs a time zone, such as datetime.now(UTC)")
        return milliseconds_of(spec)
    if not isinstance(spec, OffsetSpec) and (not isinstance(spec, int) or spec < 0):
        raise InvalidRequest(f"{spec}: a time is in milliseconds since 1970; OffsetSpec has EARLIEST, LATEST ...")
    return int(spec)


def _found(key: TopicPartition, partition: ListOffsetsPartitionResponse) -> OffsetAndTimestamp | OttlaError | None:
    if partition.error_code:
        return failure(partition.error_code, None, key)
    if partition.offset == NO_OFFSET:
        return None
    return OffsetAndTimestamp(partition.offset, partition.timestamp, partition.leader_epoch)
