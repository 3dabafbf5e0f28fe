"""An id and an epoch for a producer without transactions."""

from ottla.client.errors import BrokerUnavailable, InvalidAnswer, error_of
from ottla.client.network import Network
from ottla.client.producer.sequences import ProducerIdentity
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_FOREVER_MS = 2**31 - 1


async def ask_for_identity(network: Network) -> ProducerIdentity:
    """Asks until a broker gives one; BrokerError for what no second try can change."""
    attempt = 0
    while True:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_FOREVER_MS)
        try:
            answer = await network.ask_any(request, InitProducerIdResponse)
        except (BrokerUnavailable, InvalidAnswer):
            code = ErrorCode.NETWORK_EXCEPTION
        else:
            code = ErrorCode(answer.error_code)
            if code is ErrorCode.NONE:
                return ProducerIdentity(answer.producer_id, answer.producer_epoch)
        if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise error_of(
                code,
                "the broker gives the principal no producer id: it needs IDEMPOTENT_WRITE, or enable.idempotence=false",
            )
        if not code.retriable:
            raise error_of(code, f"the broker gives no producer id: {code.name}")
        await network.backoff(attempt)
        attempt += 1
