"""Fetch sessions over the wire; the rules themselves are tested in `test_fetch_sessions`."""

from tests.unit.broker.api.questions import FETCH_BY_NAME, PATIENCE_MS, batch, create_topic, produce, values
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)


class Session:
    """A client that keeps its session as Java's does."""

    def __init__(self, client: WireClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self.session_id = 0
        self.epoch = 0

    def request(self, *wanted: tuple[int, int], forget: tuple[int, ...] = (), max_wait_ms: int = 0) -> FetchRequest:
        """`wanted` are pairs of partition and offset."""
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in wanted
        ]
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic=self._topic, partitions=partitions)] if wanted else [],
            forgotten_topics_data=[ForgottenTopic(topic=self._topic, partitions=list(forget))] if forget else [],
        )

    def fetch(self, *wanted: tuple[int, int], forget: tuple[int, ...] = ()) -> dict[int, list[bytes | None]]:
        """The values of each partition in the answer."""
        response = self._client.ask(self.request(*wanted, forget=forget), FetchResponse, FETCH_BY_NAME)
        return self.heard(response)

    def heard(self, response: FetchResponse) -> dict[int, list[bytes | None]]:
        assert response.error_code == ErrorCode.NONE
        self.session_id = response.session_id
        self.epoch += 1
        return {answer.partition_index: values(answer) for topic in response.responses for answer in topic.partitions}


def test_a_session_answers_what_is_new(client: WireClient, topic: str) -> None:
    create_topic(client, topic, partitions=3)
    produce(client, topic, batch(b"zero"))
    session = Session(client, topic)
    assert session.fetch((0, 0), (1, 0), (2, 0)) == {0: [b"zero"], 1: [], 2: []}
    assert session.session_id > 0
    assert session.fetch((0, 1)) == {}
    produce(client, topic, batch(b"one"), partition=1)
    assert session.fetch() == {1: [b"one"]}
    assert session.fetch((1, 1), forget=(2,)) == {}
    produce(client, topic, batch(b"two"), partition=2)
    assert session.fetch() == {}


def test_a_long_poll_in_a_session(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic, partitions=2)
    with WireClient(api_port) as reader:
        session = Session(reader, topic)
        session.fetch((0, 0), (1, 0))
        request = session.request(max_wait_ms=PATIENCE_MS)
        reader.send(request, FETCH_BY_NAME)
        produce(client, topic, batch(b"one"), partition=1)
        assert session.heard(reader.receive(request, FetchResponse, FETCH_BY_NAME)) == {1: [b"one"]}


def test_sessions_do_not_end_with_their_connection(client: WireClient, topic: str, api_port: int) -> None:
    create_topic(client, topic)
    session = Session(client, topic)
    session.fetch((0, 0))
    produce(client, topic, batch(b"one"))
    with WireClient(api_port) as other:
        moved = Session(other, topic)
        moved.session_id, moved.epoch = session.session_id, session.epoch
        assert moved.fetch() == {0: [b"one"]}


def test_a_session_that_is_not_there(client: WireClient) -> None:
    answer = client.ask(FetchRequest(session_id=77, session_epoch=3), FetchResponse, FETCH_BY_NAME)
    assert (answer.error_code, answer.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)


def test_an_epoch_out_of_line(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    session = Session(client, topic)
    session.fetch((0, 0))
    session.epoch += 1
    answer = client.ask(session.request(), FetchResponse, FETCH_BY_NAME)
    assert (answer.error_code, answer.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])


def test_names_and_ids_do_not_mix(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    session = Session(client, topic)
    session.fetch((0, 0))
    answer = client.ask(session.request(), FetchResponse, 13)
    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_closing_a_session(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    session = Session(client, topic)
    session.fetch((0, 0))
    closed = session.session_id
    session.epoch = -1
    assert session.fetch((0, 0)) == {0: []}
    assert session.session_id == 0
    answer = client.ask(FetchRequest(session_id=closed, session_epoch=1), FetchResponse, FETCH_BY_NAME)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_without_partitions_is_closed(client: WireClient, topic: str) -> None:
    create_topic(client, topic)
    session = Session(client, topic)
    session.fetch((0, 0))
    assert session.fetch(forget=(0,)) == {}
    assert session.session_id == 0


def test_every_partition_has_its_turn(client: WireClient, topic: str) -> None:
    """With room for one batch only, a partition that always has more does not keep out the others."""
    create_topic(client, topic, partitions=3)
    for index in range(3):
        for _ in range(3):
            produce(client, topic, batch(b"x" * 1000), partition=index)
    session = Session(client, topic)
    seen: list[int] = []
    positions = {0: 0, 1: 0, 2: 0}
    wanted: tuple[tuple[int, int], ...] = ((0, 0), (1, 0), (2, 0))
    for _ in range(9):
        request = session.request(*wanted)
        request.max_bytes = 1
        for index, found in session.heard(client.ask(request, FetchResponse, FETCH_BY_NAME)).items():
            if found:
                seen.append(index)
                positions[index] += 1
                wanted = ((index, positions[index]),)
    assert positions == {0: 3, 1: 3, 2: 3}
    assert set(seen[:4]) == {0, 1, 2}
