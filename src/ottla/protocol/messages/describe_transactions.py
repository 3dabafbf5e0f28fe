"""DescribeTransactions: state and partitions of transactions."""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class DescribeTransactionsRequest(Request, key=ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0), flexible=0):
    transactional_ids: list[str] = field("0+")


class TopicData(Struct):
    topic: str = field("0+")
    partitions: list[Int32] = field("0+")


class TransactionState(Struct):
    error_code: Int16 = field("0+")
    transactional_id: str = field("0+")
    transaction_state: str = field("0+")
    transaction_timeout_ms: Int32 = field("0+")
    transaction_start_time_ms: Int64 = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    topics: list[TopicData] = field("0+")


class DescribeTransactionsResponse(Response, answers=DescribeTransactionsRequest):
    throttle_time_ms: Int32 = field("0+")
    transaction_states: list[TransactionState] = field("0+")
