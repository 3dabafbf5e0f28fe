"""WriteTxnMarkers (key 27): the coordinator of a transaction has partition leaders end it in their logs.

Version 2 says which version of the protocol of transactions the marker is of (KIP-890). The answer comes when all
markers are written, one error for each partition.

| refused                                                                     | error                          |
|-----------------------------------------------------------------------------|--------------------------------|
| a partition that is not here                                                | UNKNOWN_TOPIC_OR_PARTITION     |
| led by another broker, or its coordinator is not ready                      | NOT_LEADER_OR_FOLLOWER         |
| an epoch of the producer that is old, or not a new one where it must be     | INVALID_PRODUCER_EPOCH         |
| no producer id, or no epoch                                                 | UNKNOWN_SERVER_ERROR           |
| a coordinator that another one has taken the place of                       | TRANSACTION_COORDINATOR_FENCED |
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.broker.markers import Ending, write_marker
from ottla.ledger.machine import Writer
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.runtime.promise import Promise

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

logger = logging.getLogger(__name__)

_MARKERS_AT_ONCE = 50

Results = dict[tuple[str, int], int]


@serves(WriteTxnMarkersRequest)
async def handle(broker: "Broker", context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    written: list[tuple[int, str, int, Promise[None]]] = []
    for marker in request.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                promise = write_marker(broker, topic.name, index, _ending(marker))
                written.append((marker.producer_id, topic.name, index, promise))
                if not len(written) % _MARKERS_AT_ONCE:
                    await asyncio.sleep(0)
    results: dict[int, Results] = {}
    for producer_id, topic_name, index, promise in written:
        results.setdefault(producer_id, {})[topic_name, index] = await _error_code(promise)
    return WriteTxnMarkersResponse(
        markers=[_result(producer_id, partitions) for producer_id, partitions in results.items()]
    )


def _ending(marker: WritableTxnMarker) -> Ending:
    return Ending(
        Writer(marker.producer_id, marker.producer_epoch),
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )


async def _error_code(promise: Promise[None]) -> int:
    kept = asyncio.Event()
    promise.add_done_callback(lambda _: kept.set())
    await kept.wait()
    error = promise.exception()
    if error is None:
        return ErrorCode.NONE
    if isinstance(error, KafkaError):
        return error.code
    logger.error("a marker could not be written", exc_info=error)
    return ErrorCode.UNKNOWN_SERVER_ERROR


def _result(producer_id: int, partitions: Results) -> WritableTxnMarkerResult:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (name, index), code in partitions.items():
        if name not in topics:
            topics[name] = WritableTxnMarkerTopicResult(name=name)
        topics[name].partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
    return WritableTxnMarkerResult(producer_id=producer_id, topics=list(topics.values()))
