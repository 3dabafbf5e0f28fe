"""InitProducerId (key 22): give a producer its id and epoch.

| version | what changed                                                        |
|---------|---------------------------------------------------------------------|
| 2       | flexible                                                            |
| 3       | a producer may ask for a new epoch of the id it has (KIP-360)       |
| 4       | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)         |
| 5       | transaction version 2 (KIP-890)                                     |

Ids come from blocks that the controller gives out; one is never given twice, also not after a crash. A
transactional id keeps its producer id, and each producer that asks for it gets a higher epoch: whoever had it before is
fenced from then on, and what it left open is aborted, for which the caller is told to come again.
"""

from typing import TYPE_CHECKING

from ottla.broker.api.transaction_errors import error_code
from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.runtime.awaiting import kept

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
FENCED_SINCE_VERSION = 4


@serves(InitProducerIdRequest)
async def handle(broker: "Broker", context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    try:
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch must be given together")
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=await broker.producer_ids.next(), producer_epoch=0)
        is_new = request.producer_id == NO_PRODUCER_ID
        producer_id, producer_epoch = await kept(
            broker.transactions.initialize(
                request.transactional_id,
                request.transaction_timeout_ms,
                None if is_new else (request.producer_id, request.producer_epoch),
            )
        )
    except KafkaError as error:
        return InitProducerIdResponse(
            error_code=error_code(error, knows_fencing=context.api_version >= FENCED_SINCE_VERSION),
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch)
