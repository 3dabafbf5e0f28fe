"""AddOffsetsToTxn (key 25): make the offsets of a group part of a transaction.

| version | what changed                                                |
|---------|-------------------------------------------------------------|
| 2       | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588) |
| 3       | flexible                                                    |
| 4       | TRANSACTION_ABORTABLE (KIP-890)                             |

What is added is the partition of `__consumer_offsets` that has the group. Producers of transaction version 2 do not
ask: TxnOffsetCommit adds it.
"""

from typing import TYPE_CHECKING

from ottla.broker.api.transaction_errors import error_code
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.runtime.promise import Promise
from ottla.transactions.transaction import FIRST_VERSION

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

FENCED_SINCE_VERSION = 2


@serves(AddOffsetsToTxnRequest)
def handle(
    broker: "Broker", context: RequestContext, request: AddOffsetsToTxnRequest
) -> Promise[AddOffsetsToTxnResponse]:
    answer: Promise[AddOffsetsToTxnResponse] = Promise()
    producer = (request.producer_id, request.producer_epoch)
    partition = broker.coordinators.offsets_partition(request.group_id)

    def added(promise: Promise[None]) -> None:
        code = error_code(promise.exception(), knows_fencing=context.api_version >= FENCED_SINCE_VERSION)
        answer.resolve(AddOffsetsToTxnResponse(error_code=code))

    broker.transactions.add_partitions(
        request.transactional_id, producer, [partition], FIRST_VERSION
    ).add_done_callback(added)
    return answer
