"""A transactional producer of a few lines, of either version, and readers of both isolation levels."""

from dataclasses import dataclass, field

from tests.unit.broker.api.questions import FETCH_BY_NAME, PATIENCE_MS, batch, fetch_request, only_partition
from tests.waiting import PATIENCE_SECONDS, tries
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.fetch import FetchResponse, PartitionData
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records import ControlType, inspect_batches, read_control_batch, read_records

AGAIN = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
GOOD = ErrorCode.NONE
GROUP, TRANSACTION = 0, 1
LATEST = -1


@dataclass
class TransactionalProducer:
    """`version` is the transaction version. Calls give back error codes; what has to wait is asked again."""

    client: WireClient
    name: str
    version: int = 2
    timeout_ms: int = 60_000
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[str, int] = field(default_factory=dict)

    def begin(self) -> "TransactionalProducer":
        """Get an epoch that nobody has had."""
        find_coordinator(self.client, self.name, key_type=TRANSACTION)
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=self.timeout_ms)
        for _ in tries():
            answer = self.client.ask(request, InitProducerIdResponse, 5 if self.version == 2 else 4)
            if answer.error_code not in AGAIN:
                break
        assert answer.error_code == GOOD, ErrorCode(answer.error_code)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences.clear()
        return self

    def add(self, topic: str) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        )
        for _ in tries():
            answer = self.client.ask(request, AddPartitionsToTxnResponse, 3)
            code = ErrorCode(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
            if code not in AGAIN:
                break
        return code

    def send(self, topic: str, value: bytes) -> ErrorCode:
        """One record, as part of the transaction."""
        if self.version == 1 and (code := self.add(topic)) != GOOD:
            return code
        return self.write(topic, value)

    def write(self, topic: str, value: bytes) -> ErrorCode:
        """One record, whether its partition is part of the transaction or not."""
        records = batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get(topic, 0),
            transactional=True,
        )
        data = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=PATIENCE_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        for _ in tries():
            (answer,) = self.client.ask(request, ProduceResponse, 12 if self.version == 2 else 11).responses
            code = ErrorCode(answer.partition_responses[0].error_code)
            if code not in AGAIN:
                break
        if code == GOOD:
            self.sequences[topic] = self.sequences.get(topic, 0) + 1
        return code

    def end(self, *, commit: bool, patience_seconds: float = PATIENCE_SECONDS) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )
        for _ in tries(patience_seconds):
            answer = self.client.ask(request, EndTxnResponse, 5 if self.version == 2 else 4)
            if answer.error_code not in AGAIN:
                break
        if self.version == 2 and answer.error_code == GOOD:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return ErrorCode(answer.error_code)


def read(client: WireClient, topic: str, *, committed: bool) -> list[bytes | None]:
    """The values that a reader gets from the beginning of a topic's first partition, as clients filter them."""
    found: list[bytes | None] = []
    offset = 0
    while True:
        request = fetch_request(topic, offset, isolation_level=int(committed))
        answer = only_partition(client.ask(request, FetchResponse, FETCH_BY_NAME))
        assert answer.error_code == GOOD, ErrorCode(answer.error_code)
        if not answer.records:
            return found
        offset = _filter(answer, found, committed)


def _filter(answer: PartitionData, found: list[bytes | None], committed: bool) -> int:
    """Add what counts of an answer to what was found; the offset behind it."""
    data = memoryview(bytes(answer.records or b""))
    aborts = sorted((each.first_offset, each.producer_id) for each in answer.aborted_transactions or [])
    aborted: set[int] = set()
    position = offset = 0
    for header in inspect_batches(data, False):
        records = data[position : position + header.size_bytes]
        position, offset = position + header.size_bytes, header.next_offset
        while aborts and aborts[0][0] < offset:
            aborted.add(aborts.pop(0)[1])
        if header.is_control:
            if read_control_batch(records).control_type is ControlType.ABORT:
                aborted.discard(header.producer_id)
        elif not (committed and header.is_transactional and header.producer_id in aborted):
            found += [record.value for record in read_records(records)]
    return offset


def list_offset(client: WireClient, topic: str, *, committed: bool) -> int:
    """The end of a topic's first partition, as readers of one kind see it."""
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)])
    request = ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=[wanted])
    ((answer,),) = (topic.partitions for topic in client.ask(request, ListOffsetsResponse, 7).topics)
    assert answer.error_code == GOOD, ErrorCode(answer.error_code)
    return answer.offset


def find_coordinator(client: WireClient, key: str, *, key_type: int) -> None:
    """Return once there is a coordinator. Apache Kafka creates its topic meanwhile, and has to be asked again."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    for _ in tries():
        (found,) = client.ask(request, FindCoordinatorResponse).coordinators
        if found.error_code == GOOD:
            return
    raise AssertionError(f"there is no coordinator of {key}: {ErrorCode(found.error_code).name}")
