"""ElectLeaders (key 43): let partitions be led by their preferred replica or, if need be, by one that lost records.

| version | what changed                                                     |
|---------|------------------------------------------------------------------|
| 0       | (the first: preferred leaders only)                              |
| 1       | unclean elections, an error of the whole request (KIP-460)       |
| 2       | flexible                                                         |

Null asks for all partitions; of these, the ones that need no election are left out of the answer.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.cluster.leader_requests import ElectionResult, ElectionType
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


ERROR_SINCE_VERSION = 1


@serves(ElectLeadersRequest)
async def handle(broker: "Broker", context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    try:
        election = ElectionType(request.election_type)
    except ValueError:
        message = f"Expected 0 (preferred) or 1 (unclean) as the type of the election, {request.election_type} came."
        return _refused(context, request, KafkaError(ErrorCode.INVALID_REQUEST, message))
    if request.timeout_ms <= 0:
        return _refused(context, request, KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no time was given to elect leaders"))
    asked: dict[str, dict[int, None]] | None = None
    if request.topic_partitions is not None:
        asked = {}
        for topic in request.topic_partitions:
            asked.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    results, refusal = await broker.controller.elect_leaders(
        election, None if asked is None else {name: list(indexes) for name, indexes in asked.items()}
    )
    if refusal is not None:
        return _refused(context, request, refusal)
    await broker.image_applied()
    if request.topic_partitions is None:
        return ElectLeadersResponse(replica_election_results=[_needed(result) for result in results])
    found = {result.topic: result.partitions for result in results}
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[_result(index, found[topic.topic][index]) for index in topic.partitions],
            )
            for topic in request.topic_partitions
        ]
    )


def _needed(result: ElectionResult) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=result.topic,
        partition_result=[
            _result(index, error)
            for index, error in result.partitions.items()
            if error is None or error.code != ErrorCode.ELECTION_NOT_NEEDED
        ],
    )


def _result(index: int, error: KafkaError | None) -> PartitionResult:
    if error is None:
        return PartitionResult(partition_id=index, error_message=None)
    return PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)


def _refused(context: RequestContext, request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error.code if context.api_version >= ERROR_SINCE_VERSION else ErrorCode.NONE,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic, partition_result=[_result(index, error) for index in topic.partitions]
            )
            for topic in request.topic_partitions or ()
        ],
    )
