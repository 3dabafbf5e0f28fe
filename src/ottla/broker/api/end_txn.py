"""EndTxn (key 26): commit or abort a transaction.

| version | what changed                                                                          |
|---------|---------------------------------------------------------------------------------------|
| 2       | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)                           |
| 3       | flexible                                                                              |
| 4       | TRANSACTION_ABORTABLE                                                                 |
| 5       | transaction version 2: the answer has the producer's next id and epoch (KIP-890)      |

The answer means that the decision is in the log: from then on the transaction ends this way whatever happens. On one
broker readers can usually see it by then; they can at the latest when the producer's next transaction begins.
"""

from typing import TYPE_CHECKING

from ottla.broker.api.transaction_errors import error_code
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.runtime.promise import Promise
from ottla.transactions.ending import EndRequest
from ottla.transactions.machine import Producer
from ottla.transactions.transaction import EPOCH_BUMP_VERSION, FIRST_VERSION

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

FENCED_SINCE_VERSION = 2
EPOCH_BUMP_SINCE_VERSION = 5


@serves(EndTxnRequest)
def handle(broker: "Broker", context: RequestContext, request: EndTxnRequest) -> Promise[EndTxnResponse]:
    answer: Promise[EndTxnResponse] = Promise()
    version = context.api_version
    wanted = EndRequest(
        request.producer_id,
        request.producer_epoch,
        request.committed,
        EPOCH_BUMP_VERSION if version >= EPOCH_BUMP_SINCE_VERSION else FIRST_VERSION,
    )

    def ended(promise: Promise[Producer]) -> None:
        error = promise.exception()
        if error is not None:
            code = error_code(error, knows_fencing=version >= FENCED_SINCE_VERSION)
            answer.resolve(EndTxnResponse(error_code=code))
        else:
            producer_id, producer_epoch = promise.result()
            answer.resolve(EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch))

    broker.transactions.end(request.transactional_id, wanted).add_done_callback(ended)
    return answer
