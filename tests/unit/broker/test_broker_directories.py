"""Log directories that fail: their partitions are out of use, all others go on."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    PATIENCE_MS,
    PRODUCE_BY_NAME,
    batch,
    consume,
    create_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    produce_request,
)
from tests.wire_client import WireClient

from ottla.broker.broker import Broker, StartError
from ottla.broker.config import BrokerConfig
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from ottla.protocol.messages.produce import ProduceResponse
from ottla.testing.faulty_disk import FaultyDisk

NODE_ID = 1
PARTITIONS = 4
ROUNDS = 100_000


class Machine:
    """A broker with two log directories on a disk that can fail; partitions 0 and 2 are in the first one."""

    def __init__(self, directory: Path) -> None:
        self.disk = FaultyDisk()
        self.one, self.two = str(directory / "one"), str(directory / "two")
        self._directory = directory
        self.thread = self._start()

    def _start(self) -> BrokerThread:
        return BrokerThread(self._directory, {"log.dirs": f"{self.one},{self.two}"}, disk=self.disk).start()

    def restart(self) -> None:
        self.thread.stop()
        self.thread = self._start()

    @property
    def broker(self) -> Broker:
        return self.thread.broker

    def connect(self) -> WireClient:
        return WireClient(self.thread.port)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.thread.stop()


def partitions(client: WireClient, topic: str) -> list[MetadataResponsePartition]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (answer,) = client.ask(request, MetadataResponse).topics
    assert answer.error_code == ErrorCode.NONE
    return answer.partitions


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask again and again; what asks takes a turn of the broker's loop each time."""
    for _ in range(ROUNDS):
        if condition():
            return
    raise AssertionError("the condition never came true")


def wait_for_no_leader(client: WireClient, topic: str, *indexes: int) -> None:
    wait_until(lambda: all(partitions(client, topic)[index].leader_id == -1 for index in indexes))


def places(client: WireClient) -> dict[str, dict[str, set[int]]]:
    """The partitions of each topic in each directory that works."""
    answer = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {
        result.log_dir: {topic.name: {each.partition_index for each in topic.partitions} for topic in result.topics}
        for result in answer.results
        if result.error_code == ErrorCode.NONE
    }


def write_everywhere(client: WireClient, topic: str, value: bytes) -> list[int]:
    return [produce(client, topic, batch(value), partition=index).error_code for index in range(PARTITIONS)]


GOOD, BAD = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failing_write_takes_only_its_directory_out_of_use(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", partitions=PARTITIONS)
        assert places(client) == {machine.one: {"t": {0, 2}}, machine.two: {"t": {1, 3}}}
        assert write_everywhere(client, "t", b"before") == [GOOD] * 4
        machine.disk.broken.add(machine.two)
        assert produce(client, "t", batch(b"lost"), partition=1).error_code == BAD
        assert write_everywhere(client, "t", b"after") == [GOOD, BAD, GOOD, BAD]
        assert [fetch(client, "t", 0, partition=index).error_code for index in range(4)] == [GOOD, BAD, GOOD, BAD]
        assert consume(client, "t", 2) == [b"before", b"after"]
        assert not machine.broker.all_directories_failed.is_set()


def test_the_cluster_is_told(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", partitions=PARTITIONS)
        before = partitions(client, "t")
        machine.disk.broken.add(machine.two)
        assert produce(client, "t", batch(b"lost"), partition=1).error_code == BAD
        wait_for_no_leader(client, "t", 1, 3)
        after = partitions(client, "t")
        assert [after[0], after[2]] == [before[0], before[2]]
        for index in (1, 3):
            lost = after[index]
            assert (lost.error_code, lost.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            assert lost.leader_epoch == before[index].leader_epoch + 1
            assert (lost.replica_nodes, lost.isr_nodes, lost.offline_replicas) == ([NODE_ID], [], [NODE_ID])
        (topic,) = client.ask(DescribeTopicPartitionsRequest(topics=[]), DescribeTopicPartitionsResponse).topics
        assert [each.offline_replicas for each in topic.partitions] == [[], [NODE_ID], [], [NODE_ID]]
        assert [each.leader_id for each in topic.partitions] == [NODE_ID, -1, NODE_ID, -1]
        assert [each.error_code for each in topic.partitions] == [GOOD] * 4
        assert [each.isr_nodes for each in topic.partitions] == [[NODE_ID], [], [NODE_ID], []]
        assert [each.eligible_leader_replicas for each in topic.partitions] == [[], [NODE_ID], [], [NODE_ID]]
        # The answer stays the same once the broker has heard that it leads these partitions no more.
        assert write_everywhere(client, "t", b"after") == [GOOD, BAD, GOOD, BAD]


def test_every_question_about_a_lost_partition_has_the_same_answer(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", partitions=2)
        machine.disk.broken.add(machine.two)
        assert produce(client, "t", batch(b"lost"), partition=1).error_code == BAD
        offsets = ListOffsetsRequest(
            topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=1, timestamp=-1)])]
        )
        wait_for_no_leader(client, "t", 1)
        assert client.ask(offsets, ListOffsetsResponse).topics[0].partitions[0].error_code == BAD
        producers = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0, 1])])
        (described,) = client.ask(producers, DescribeProducersResponse).topics
        assert [each.error_code for each in described.partitions] == [GOOD, BAD]
        directories = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results
        assert [(each.log_dir, each.error_code) for each in directories] == [(machine.one, GOOD), (machine.two, BAD)]
        assert (directories[1].topics, directories[1].total_bytes, directories[1].usable_bytes) == ([], -1, -1)


def test_a_failing_fsync_answers_those_who_wait(machine: Machine) -> None:
    """A producer that waits for its flush and a reader in a long poll hear of it at once."""
    with machine.connect() as client, machine.connect() as reader:
        create_topic(client, "t", partitions=PARTITIONS, configs={"flush.messages": "1"})
        poll = fetch_request("t", 0, partition=3, max_wait_ms=PATIENCE_MS)
        reader.send(poll, FETCH_BY_NAME)
        machine.disk.unsyncable.add(machine.two)
        assert produce(client, "t", batch(b"lost"), partition=1).error_code == BAD
        assert only_partition(reader.receive(poll, FetchResponse, FETCH_BY_NAME)).error_code == BAD
        assert write_everywhere(client, "t", b"after") == [GOOD, BAD, GOOD, BAD]


def test_one_request_to_both_directories(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", partitions=2)
        machine.disk.broken.add(machine.two)
        request = produce_request("t", batch(b"value"), partition=1)
        request.topic_data[0].partition_data.extend(
            produce_request("t", batch(b"value"), partition=0).topic_data[0].partition_data
        )
        (answered,) = client.ask(request, ProduceResponse, PRODUCE_BY_NAME).responses
        assert [(each.index, each.error_code) for each in answered.partition_responses] == [(1, BAD), (0, GOOD)]


def test_new_topics_go_to_the_healthy_directories(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "old", partitions=2)
        machine.disk.broken.add(machine.two)
        # Nobody has noticed yet: creating a log there does.
        create_topic(client, "new", partitions=PARTITIONS)
        assert places(client) == {machine.one: {"old": {0}, "new": {0, 1, 2, 3}}}
        assert write_everywhere(client, "new", b"value") == [GOOD] * 4
        assert produce(client, "old", batch(b"lost"), partition=1).error_code == BAD


def test_a_topic_with_lost_partitions_can_be_deleted_and_made_again(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", partitions=2)
        write = batch(b"value")
        assert produce(client, "t", write, partition=1).error_code == GOOD
        machine.disk.broken.add(machine.two)
        assert produce(client, "t", write, partition=1).error_code == BAD
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=PATIENCE_MS)
        (deleted,) = client.ask(deletion, DeleteTopicsResponse).responses
        assert deleted.error_code == GOOD
        create_topic(client, "t", partitions=2)
        assert [produce(client, "t", write, partition=index).base_offset for index in range(2)] == [0, 0]
        assert places(client) == {machine.one: {"t": {0, 1}}}


def test_after_a_restart_the_records_are_there_again(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", partitions=PARTITIONS)
        assert write_everywhere(client, "t", b"before") == [GOOD] * 4
        machine.disk.broken.add(machine.two)
        assert write_everywhere(client, "t", b"after") == [GOOD, BAD, GOOD, BAD]
    machine.disk.broken.clear()
    machine.restart()
    with machine.connect() as client:
        wait_until(lambda: all(each.leader_id == NODE_ID for each in partitions(client, "t")))
        assert [each.offline_replicas for each in partitions(client, "t")] == [[]] * 4
        assert write_everywhere(client, "t", b"again") == [GOOD] * 4
        assert consume(client, "t", 3, partition=0) == [b"before", b"after", b"again"]
        assert consume(client, "t", 2, partition=1) == [b"before", b"again"]


def test_a_directory_that_is_broken_at_the_start(machine: Machine) -> None:
    """Its partitions are lost for now, and are not begun anew elsewhere; new ones are."""
    with machine.connect() as client:
        create_topic(client, "t", partitions=PARTITIONS)
        assert write_everywhere(client, "t", b"before") == [GOOD] * 4
    machine.disk.broken.add(machine.two)
    machine.restart()
    with machine.connect() as client:
        wait_for_no_leader(client, "t", 1, 3)
        assert write_everywhere(client, "t", b"after") == [GOOD, BAD, GOOD, BAD]
        create_topic(client, "new", partitions=2)
        assert places(client) == {machine.one: {"t": {0, 2}, "new": {0, 1}}}
    machine.disk.broken.clear()
    machine.restart()
    with machine.connect() as client:
        wait_until(lambda: all(each.leader_id == NODE_ID for each in partitions(client, "t")))
        assert consume(client, "t", 1, partition=1) == [b"before"]
        assert consume(client, "t", 2, partition=0) == [b"before", b"after"]


def test_when_all_have_failed_the_broker_is_told_to_end(machine: Machine) -> None:
    with machine.connect() as client:
        create_topic(client, "t", partitions=2)
        machine.disk.broken |= {machine.one, machine.two}
        assert produce(client, "t", batch(b"lost"), partition=0).error_code == BAD
        assert produce(client, "t", batch(b"lost"), partition=1).error_code == BAD
        wait_until(lambda: fetch(client, "t", 0).error_code == BAD and machine.broker.all_directories_failed.is_set())


def test_without_a_directory_nothing_can_be_created(machine: Machine) -> None:
    with machine.connect() as client:
        machine.disk.broken |= {machine.one, machine.two}
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=PATIENCE_MS
        )
        client.ask(request, CreateTopicsResponse)
        assert produce(client, "t", batch(b"lost")).error_code == BAD


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_directory_of_another_broker_is_no_failure(tmp_path: Path, name: str) -> None:
    """It is a mistake in the settings, and the broker does not start."""
    made = Machine(tmp_path)
    made.thread.stop()
    (tmp_path / name / "meta.properties").write_text("version=1\nnode.id=77\n")
    properties = {"log.dirs": f"{made.one},{made.two}", "listeners": "PLAINTEXT://127.0.0.1:0"}

    async def start() -> None:
        await Broker(BrokerConfig.from_properties(properties)).start()

    with pytest.raises(StartError, match=r"node\.id"):
        asyncio.run(start())
