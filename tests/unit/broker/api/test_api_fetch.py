import gc

import pytest
from tests.unit.broker.api.questions import (
    FETCH_BY_NAME,
    PATIENCE_MS,
    PRODUCE_BY_NAME,
    batch,
    create_topic,
    fetch,
    fetch_request,
    only_partition,
    produce,
    produce_request,
    values,
)
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.produce import PartitionProduceData, ProduceResponse
from ottla.records import read_header

READ_COMMITTED = 1


def answer_to(client: WireClient, request: FetchRequest, version: int = FETCH_BY_NAME) -> PartitionData:
    return only_partition(client.ask(request, FetchResponse, version))


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version(client: WireClient, topic: str, version: int) -> None:
    topic_id = create_topic(client, topic)
    produce(client, topic, batch(b"one", b"two"))
    produce(client, topic, batch(b"three"))
    response = client.ask(fetch_request(topic, 0, topic_id=topic_id), FetchResponse, version)
    (answered,) = response.responses
    assert (answered.topic, answered.topic_id) == ((topic, bytes(16)) if version < 13 else ("", topic_id))
    (answer,) = answered.partitions
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 3, 3)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert values(answer) == [b"one", b"two", b"three"]


def test_the_batch_that_holds_the_offset_comes_whole(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"zero", b"one", b"two"))
    produce(client, topic, batch(b"three"))
    assert values(fetch(client, topic, 1)) == [b"zero", b"one", b"two", b"three"]
    assert values(fetch(client, topic, 3)) == [b"three"]


@pytest.mark.parametrize("partition", [1, -1])
def test_a_partition_that_is_not_there(client: WireClient, topic: str, partition: int) -> None:
    create_topic(client, topic)
    answer = fetch(client, topic, 0, partition=partition)
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert not answer.records


def test_a_topic_that_is_not_there(client: WireClient, topic: str) -> None:
    assert fetch(client, topic, 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_id_nobody_has(client: WireClient) -> None:
    answer = answer_to(client, fetch_request("", 0, topic_id=b"?" * 16), 13)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("offset", [-1, 2, 2**62])
def test_an_offset_out_of_range(client: WireClient, topic: str, offset: int) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"one"))
    answer = fetch(client, topic, offset, max_wait_ms=PATIENCE_MS)
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_the_end_is_no_error(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert fetch(client, topic, 0).error_code == ErrorCode.NONE
    produce(client, topic, batch(b"one"))
    answer = fetch(client, topic, 1, max_wait_ms=1)
    assert (answer.error_code, answer.high_watermark, values(answer)) == (0, 1, [])


@pytest.mark.parametrize("isolation_level", [0, READ_COMMITTED])
def test_isolation_levels(client: WireClient, topic: str, isolation_level: int) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"one"))
    answer = answer_to(client, fetch_request(topic, 0, isolation_level=isolation_level))
    assert values(answer) == [b"one"]
    assert answer.last_stable_offset == 1
    assert answer.aborted_transactions == ([] if isolation_level == READ_COMMITTED else None)


def test_a_leader_epoch_from_the_future(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    assert answer_to(client, fetch_request(topic, 0, leader_epoch=0)).error_code == ErrorCode.NONE
    assert answer_to(client, fetch_request(topic, 0, leader_epoch=9)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_last_fetched_epoch_that_never_was(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"one"))
    request = fetch_request(topic, 1)
    request.topics[0].partitions[0].last_fetched_epoch = 9
    assert answer_to(client, request).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_reader_that_read_more_than_its_epoch_has(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    produce(client, topic, batch(b"one"))
    request = fetch_request(topic, 5)
    request.topics[0].partitions[0].last_fetched_epoch = 0
    answer = answer_to(client, request)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
    assert values(answer) == []


# Waiting


def nothing_came(client: WireClient) -> bool:
    client.socket.setblocking(False)
    try:
        client.socket.recv(1)
    except BlockingIOError:
        return True
    finally:
        client.socket.settimeout(20)
    return False


def test_a_long_poll_ends_when_records_come(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic)
    with WireClient(api_port) as reader:
        request = fetch_request(topic, 0, max_wait_ms=PATIENCE_MS)
        for number in range(3):
            request.topics[0].partitions[0].fetch_offset = number
            reader.send(request, FETCH_BY_NAME)
            produce(client, topic, batch(b"%d" % number))
            answer = only_partition(reader.receive(request, FetchResponse, FETCH_BY_NAME))
            assert (values(answer), answer.high_watermark) == ([b"%d" % number], number + 1)


def test_a_long_poll_ends_with_nothing_when_its_time_is_over(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    answer = fetch(client, topic, 0, max_wait_ms=50)
    assert (answer.error_code, answer.high_watermark, values(answer)) == (0, 0, [])


def test_a_long_poll_waits_for_enough_bytes(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic)
    records = batch(b"x" * 100)
    with WireClient(api_port) as reader:
        request = fetch_request(topic, 0, max_wait_ms=PATIENCE_MS, min_bytes=3 * len(records))
        reader.send(request, FETCH_BY_NAME)
        for _ in range(2):
            produce(client, topic, records)
            fetch(client, topic, 0)
            assert nothing_came(reader)
        produce(client, topic, records)
        answer = only_partition(reader.receive(request, FetchResponse, FETCH_BY_NAME))
        assert values(answer) == [b"x" * 100] * 3


def poll_of_three(topic: str) -> FetchRequest:
    """A long poll of the partitions 0 to 2."""
    request = fetch_request(topic, 0, max_wait_ms=PATIENCE_MS)
    request.topics[0].partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in range(3)
    ]
    return request


def test_a_long_poll_of_several_partitions_ends_with_the_first(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic, partitions=3)
    with WireClient(api_port) as reader:
        request = poll_of_three(topic)
        reader.send(request, FETCH_BY_NAME)
        produce(client, topic, batch(b"one"), partition=2)
        (answered,) = reader.receive(request, FetchResponse, FETCH_BY_NAME).responses
        assert {answer.partition_index: values(answer) for answer in answered.partitions} == {0: [], 1: [], 2: [b"one"]}


@pytest.mark.usefixtures("ottla_only")
def test_a_long_poll_ends_with_all_that_one_request_brought(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic, partitions=3)
    with WireClient(api_port) as reader:
        request = poll_of_three(topic)
        reader.send(request, FETCH_BY_NAME)
        writing = produce_request(topic, batch(b"zero"))
        writing.topic_data[0].partition_data += [
            PartitionProduceData(index=index, records=batch(b"more")) for index in (1, 2)
        ]
        client.ask(writing, ProduceResponse, PRODUCE_BY_NAME)
        (answered,) = reader.receive(request, FetchResponse, FETCH_BY_NAME).responses
        found = {answer.partition_index: values(answer) for answer in answered.partitions}
        assert found == {0: [b"zero"], 1: [b"more"], 2: [b"more"]}


@pytest.mark.usefixtures("ottla_only")
def test_long_polls_leave_nothing_to_the_garbage_collector(client: WireClient, topic: str, api_port: int) -> None:
    """It would stop the broker for milliseconds whenever enough has come together."""
    polls = 300
    create_topic(client, topic)
    with WireClient(api_port) as reader:
        request = fetch_request(topic, 0, max_wait_ms=PATIENCE_MS)
        gc.collect()
        gc.disable()
        try:
            for number in range(polls):
                request.topics[0].partitions[0].fetch_offset = number
                reader.send(request, FETCH_BY_NAME)
                produce(client, topic, batch(b"value"))
                reader.receive(request, FetchResponse, FETCH_BY_NAME)
            assert gc.collect() < polls
        finally:
            gc.enable()


def test_a_long_poll_ends_when_its_topic_is_deleted(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic)
    with WireClient(api_port) as reader:
        request = fetch_request(topic, 0, max_wait_ms=PATIENCE_MS)
        reader.send(request, FETCH_BY_NAME)
        fetch(client, topic, 0)
        client.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=PATIENCE_MS), DeleteTopicsResponse, 5)
        answer = only_partition(reader.receive(request, FetchResponse, FETCH_BY_NAME))
        assert answer.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_an_error_in_one_partition_answers_at_once(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=2)
    request = fetch_request(topic, 0, max_wait_ms=60_000)
    request.topics[0].partitions.append(FetchPartition(partition=1, fetch_offset=9, partition_max_bytes=1000))
    (answered,) = client.ask(request, FetchResponse, FETCH_BY_NAME).responses
    assert {answer.partition_index: answer.error_code for answer in answered.partitions} == {
        0: ErrorCode.NONE,
        1: ErrorCode.OFFSET_OUT_OF_RANGE,
    }


def test_who_leaves_a_long_poll_is_forgotten(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic)
    for _ in range(3):
        with WireClient(api_port) as reader:
            reader.send(fetch_request(topic, 0, max_wait_ms=60_000), FETCH_BY_NAME)
    produce(client, topic, batch(b"one"))
    assert values(fetch(client, topic, 0)) == [b"one"]


# Limits


@pytest.mark.parametrize(("max_bytes", "partition_max_bytes"), [(1, 1 << 20), (1 << 20, 1), (1, 1), (0, 0)])
def test_at_least_one_whole_batch(client: WireClient, topic: str, max_bytes: int, partition_max_bytes: int) -> None:
    create_topic(client, topic)
    records = batch(b"x" * 5000)
    produce(client, topic, records)
    produce(client, topic, records)
    request = fetch_request(topic, 0, max_bytes=max_bytes, partition_max_bytes=partition_max_bytes)
    answer = answer_to(client, request)
    assert len(answer.records or b"") == len(records)
    assert values(answer) == [b"x" * 5000]


def test_only_the_first_partition_may_go_over_the_limit(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=3)
    for index in (1, 2):
        produce(client, topic, batch(b"x" * 5000), partition=index)
    request = fetch_request(topic, 0, max_bytes=1)
    request.topics[0].partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(3)
    ]
    (answered,) = client.ask(request, FetchResponse, FETCH_BY_NAME).responses
    found = {answer.partition_index: len(values(answer)) for answer in answered.partitions}
    assert found == {0: 0, 1: 1, 2: 0}


def test_limits_cut_what_follows_the_first_batch(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    records = batch(b"x" * 1000)
    for _ in range(10):
        produce(client, topic, records)
    limit = 3 * len(records)
    answer = answer_to(client, fetch_request(topic, 0, partition_max_bytes=limit))
    assert len(answer.records or b"") == limit
    assert read_header(bytes(answer.records or b"")).base_offset == 0
