"""InitProducerId (key 22): give an idempotent producer its id.

| version | what changed                                                        |
|---------|---------------------------------------------------------------------|
| 2       | flexible                                                            |
| 3       | a producer may ask for a new epoch of the id it has (KIP-360)       |
| 4       | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)         |
| 5       | transaction version 2 (KIP-890)                                     |

Ids come from blocks that the controller gives out; one is never given twice, also not after a crash. A
transactional id needs a coordinator, and there is none yet.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


@serves(InitProducerIdRequest)
async def handle(broker: "Broker", context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    try:
        if request.transactional_id == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch must be given together")
        if request.transactional_id is not None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker does not coordinate transactions")
        producer_id = await broker.producer_ids.next()
    except KafkaError as error:
        return InitProducerIdResponse(
            error_code=error.code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
