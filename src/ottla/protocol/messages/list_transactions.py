"""ListTransactions: the transactions a coordinator knows.

Version 1 can select by how long they are open, 2 by a pattern of their ids.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class ListTransactionsRequest(Request, key=ApiKey.LIST_TRANSACTIONS, versions=(0, 2), flexible=0):
    state_filters: list[str] = field("0+")
    producer_id_filters: list[Int64] = field("0+")
    duration_filter: Int64 = field("1+", default=-1)
    transactional_id_pattern: str | None = field("2+", nullable="2+", default=None)


class TransactionState(Struct):
    transactional_id: str = field("0+")
    producer_id: Int64 = field("0+")
    transaction_state: str = field("0+")


class ListTransactionsResponse(Response, answers=ListTransactionsRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    unknown_state_filters: list[str] = field("0+")
    transaction_states: list[TransactionState] = field("0+")
