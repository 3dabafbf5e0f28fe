"""WriteTxnMarkers: a transaction coordinator has the leaders write commit or abort markers.

Version 2 added the version of the transaction protocol.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Int64, Struct, field


class WritableTxnMarkerTopic(Struct):
    name: str = field("0+")
    partition_indexes: list[Int32] = field("0+")


class WritableTxnMarker(Struct):
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    transaction_result: bool = field("0+")
    topics: list[WritableTxnMarkerTopic] = field("0+")
    coordinator_epoch: Int32 = field("0+")
    transaction_version: Int8 = field("2+", ignorable=True)


class WriteTxnMarkersRequest(Request, key=ApiKey.WRITE_TXN_MARKERS, versions=(1, 2), flexible=1):
    markers: list[WritableTxnMarker] = field("0+")


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


class WritableTxnMarkerTopicResult(Struct):
    name: str = field("0+")
    partitions: list[WritableTxnMarkerPartitionResult] = field("0+")


class WritableTxnMarkerResult(Struct):
    producer_id: Int64 = field("0+")
    topics: list[WritableTxnMarkerTopicResult] = field("0+")


class WriteTxnMarkersResponse(Response, answers=WriteTxnMarkersRequest):
    markers: list[WritableTxnMarkerResult] = field("0+")
