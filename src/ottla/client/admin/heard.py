"""What brokers have heard of.

A controller answers when a change is decided. Brokers hear of it a moment later, each in its own time, so whoever asks
one of them next may still be told of the world before. Calls that `wait` come here before they return.
"""

import asyncio
from collections.abc import Mapping, Sequence

from ottla.client.admin.base import Progress, tell
from ottla.client.admin.call import Call, pieces
from ottla.client.admin.failures import failure
from ottla.client.errors import OttlaError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

_TOPICS_A_REQUEST = 1000


async def until_known(call: Call, partitions: Mapping[str, int]) -> None:
    """Wait until every broker tells a leader for each partition, and of at least so many partitions. What is not known
    in time is there all the same, so nothing fails here."""
    nodes = sorted(call.network.cluster.nodes)
    attempts = 0
    while partitions and nodes and call.remaining_seconds():
        checks = await asyncio.gather(*(_knows(call, node_id, partitions) for node_id in nodes))
        nodes = [node_id for node_id, knows in zip(nodes, checks, strict=True) if not knows]
        if nodes:
            await call.network.backoff(attempts)
            attempts += 1


async def until_gone(call: Call, names: Sequence[str], progress: Progress | None) -> dict[str, OttlaError]:
    """Wait until no broker knows them; the error of those that are still there when the time is over."""
    left = list(names)
    tell(progress, 0, len(names))
    attempts = 0
    while left:
        known: set[str] = set()
        for node_id in sorted(call.network.cluster.nodes):
            known |= await _known_to(call, node_id, left)
        gone = len(left) - len(known)
        left = [name for name in left if name in known]
        if gone:
            tell(progress, len(names) - len(left), len(names))
        if not left or not call.remaining_seconds():
            break
        await call.network.backoff(attempts)
        attempts += 1
    return {name: failure(ErrorCode.REQUEST_TIMED_OUT, "still known to a broker", name) for name in left}


async def _knows(call: Call, node_id: int, partitions: Mapping[str, int]) -> bool:
    """True also where the broker cannot be asked: it is not there to be waited for."""
    try:
        told = await _told_by(call, node_id, list(partitions))
    except OttlaError:
        return True
    for topic in told:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        if topic.error_code:
            continue
        if len(topic.partitions) < partitions.get(topic.name or "", 0):
            return False
        if any(partition.leader_id < 0 for partition in topic.partitions):
            return False
    return True


async def _known_to(call: Call, node_id: int, names: Sequence[str]) -> set[str]:
    """None of them where the broker cannot be asked."""
    try:
        told = await _told_by(call, node_id, names)
    except OttlaError:
        return set()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {topic.name for topic in told if topic.name is not None and topic.error_code != unknown}


async def _told_by(call: Call, node_id: int, names: Sequence[str]) -> list[MetadataResponseTopic]:
    told: list[MetadataResponseTopic] = []
    for piece in pieces(names, _TOPICS_A_REQUEST):
        wanted = [MetadataRequestTopic(name=name) for name in piece]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        told += (await call.to(node_id, request, MetadataResponse)).topics
    return told
