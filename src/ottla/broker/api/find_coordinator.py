"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

| version | what changed                                                  |
|---------|---------------------------------------------------------------|
| 1       | transactional ids as well as groups (KIP-98)                  |
| 3       | flexible                                                      |
| 4       | several keys at once (KIP-699)                                |
| 6       | share groups (KIP-932)                                        |

The leader of the key's partition of an internal topic is the coordinator. Where Kafka answers
COORDINATOR_NOT_AVAILABLE while that topic is being created, the answer waits until it is there.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.topic_names import GROUP_TOPIC, TRANSACTION_TOPIC
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

SEVERAL_KEYS_SINCE_VERSION = 4
SHARE_KEYS_SINCE_VERSION = 6
GROUP, TRANSACTION, SHARE = 0, 1, 2
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
TOPICS = {GROUP: GROUP_TOPIC, TRANSACTION: TRANSACTION_TOPIC}


@serves(FindCoordinatorRequest)
async def handle(broker: "Broker", context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if context.api_version >= SEVERAL_KEYS_SINCE_VERSION:
        found = [await _find(broker, context, request.key_type, key) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _find(broker, context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message if one.error_code else ErrorCode.NONE.name,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find(broker: "Broker", context: RequestContext, key_type: int, key: str) -> Coordinator:
    try:
        _check(key_type, key, context.api_version)
        coordinator = broker.coordinators.of_topic.get(TOPICS.get(key_type, ""))
        if coordinator is None:
            raise KafkaError(NOT_AVAILABLE, "there is no coordinator of this kind here")
        await broker.coordinators.ensure_topic(coordinator)
        topic = coordinator.topic
        leader = broker.leader_of(topic.name, topic.partition_of(key), context.listener)
        if leader is None:
            raise KafkaError(NOT_AVAILABLE, f"the partition of {key} has no leader")
    except KafkaError as error:
        code = ErrorCode.INVALID_REQUEST if error.code is ErrorCode.INVALID_REQUEST else NOT_AVAILABLE
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=error.message)
    return Coordinator(key=key, node_id=leader.node_id, host=leader.host, port=leader.port, error_message="")


def _check(key_type: int, key: str, version: int) -> None:
    if key_type in TOPICS:
        return
    if key_type != SHARE or version < SHARE_KEYS_SINCE_VERSION or key.count(":") != 2:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the key type is not known or its key is malformed")
