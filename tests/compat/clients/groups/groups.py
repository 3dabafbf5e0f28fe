"""What a broker says of a group, asked over the wire: the tests need not trust the library that they test."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.compat.clients.groups.hosts import TIMEOUT_SECONDS
from tests.peers.process import ServerProcess
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

OFFSETS_BY_NAME = 9
NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@dataclass(frozen=True)
class Described:
    state: str
    members: int


def wire(broker: ServerProcess) -> WireClient:
    assert broker.port is not None
    return WireClient(broker.port)


def described(broker: ServerProcess, group: str, protocol: str) -> Described:
    with wire(broker) as client:
        if protocol == "consumer":
            request = ConsumerGroupDescribeRequest(group_ids=[group])
            (found,) = client.ask(request, ConsumerGroupDescribeResponse).groups
            return Described(found.group_state, len(found.members))
        (classic,) = client.ask(DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse).groups
        return Described(classic.group_state, len(classic.members))


def kind_of_group(broker: ServerProcess, group: str) -> str | None:
    """Whether it is listed as a classic or as a consumer group; None where it is not listed."""
    with wire(broker) as client:
        listed = client.ask(ListGroupsRequest(), ListGroupsResponse).groups
    return next((found.group_type for found in listed if found.group_id == group), None)


def committed(broker: ServerProcess, group: str, topic: str, partitions: int) -> dict[int, int]:
    """The committed offset of every partition that has one; a coordinator that is not ready is asked again."""
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=list(range(partitions)))]
    )
    deadline = time.monotonic() + TIMEOUT_SECONDS
    with wire(broker) as client:
        while True:
            (found,) = client.ask(OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse, OFFSETS_BY_NAME).groups
            if found.error_code == ErrorCode.NONE:
                break
            assert found.error_code in NOT_READY, ErrorCode(found.error_code)
            assert time.monotonic() < deadline, f"the coordinator of {group} is not ready"
            time.sleep(0.05)
    return {
        partition.partition_index: partition.committed_offset
        for answered in found.topics
        for partition in answered.partitions
        if partition.committed_offset >= 0
    }
