"""AddPartitionsToTxn: make partitions part of a transaction.

Up to version 3 it is sent by clients, for one transaction. From version 4 brokers send it to the coordinator, for many
at once, also to verify only; the fields of the two forms have nothing in common.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class AddPartitionsToTxnTopic(Struct):
    name: str = field("0+")
    partitions: list[Int32] = field("0+")


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = field("4+")
    producer_id: Int64 = field("4+")
    producer_epoch: Int16 = field("4+")
    verify_only: bool = field("4+")
    topics: list[AddPartitionsToTxnTopic] = field("4+")


class AddPartitionsToTxnRequest(Request, key=ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 5), flexible=3):
    transactions: list[AddPartitionsToTxnTransaction] = field("4+")
    v3_and_below_transactional_id: str = field("0-3")
    v3_and_below_producer_id: Int64 = field("0-3")
    v3_and_below_producer_epoch: Int16 = field("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field("0-3")


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32 = field("0+")
    partition_error_code: Int16 = field("0+")


class AddPartitionsToTxnTopicResult(Struct):
    name: str = field("0+")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field("0+")


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = field("4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = field("4+")


class AddPartitionsToTxnResponse(Response, answers=AddPartitionsToTxnRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("0-3")
