"""How far groups are behind: for each partition what is committed, where the log ends, and who reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.client.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import AsyncAdmin, GroupDescription


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """`committed` and `lag` are None where nothing is committed, `end` and `lag` where the partition cannot be read."""

    group: str
    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    member: str | None
    host: str | None

    def row(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


def lags(
    group_id: str,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
    group: "GroupDescription | None",
) -> list[PartitionLag]:
    """By topic and partition: all that have an offset, and all that a member reads without having committed one."""
    owners = {partition: member for member in (group.members if group else ()) for partition in member.assignment}
    rows = []
    for partition in sorted(set(committed) | set(owners)):
        offset = committed[partition].offset if partition in committed else None
        end = ends.get(partition)
        owner = owners.get(partition)
        rows.append(
            PartitionLag(
                group_id,
                partition.topic,
                partition.partition,
                offset,
                end,
                # The end may have been told before the group committed what came after it.
                None if offset is None or end is None else max(end - offset, 0),
                None if owner is None else owner.instance_id or owner.member_id,
                None if owner is None else owner.host.removeprefix("/"),
            )
        )
    return rows


async def lags_of_all(admin: "AsyncAdmin") -> list[PartitionLag]:
    """Of all groups; those that go away meanwhile are left out."""
    from ottla.protocol.errors import ErrorCode

    listed = [group.group_id for group in await admin.list_groups(types=("classic", "consumer"))]
    described = await admin.describe_groups(listed)
    gone = {
        key for key, error in described.errors.items() if getattr(error, "code", None) == ErrorCode.GROUP_ID_NOT_FOUND
    }
    there = [group_id for group_id in listed if group_id not in gone]
    return await lags_of(admin, there) if there else []


async def lags_of(admin: "AsyncAdmin", group_ids: list[str]) -> list[PartitionLag]:
    """Of each group. A group that is not known fails; one without offsets has no rows."""
    described = await admin.describe_groups(group_ids)
    described.raise_for_errors()
    committed = (await admin.list_group_offsets(group_ids)).raise_for_errors()
    wanted = {partition for group_id in group_ids for partition in committed[group_id]}
    wanted |= {partition for group in described.values() for member in group.members for partition in member.assignment}
    found = await admin.list_offsets(sorted(wanted))
    ends = {partition: end.offset for partition, end in found.succeeded.items() if end is not None}
    return [row for key in group_ids for row in lags(key, committed[key], ends, described[key])]


def total(rows: list[PartitionLag]) -> int:
    return sum(row.lag or 0 for row in rows)
