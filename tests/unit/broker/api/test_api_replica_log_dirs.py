"""AlterReplicaLogDirs on a broker with one log directory; `test_broker_moves` has the ones with two."""

import pytest
from tests.unit.broker.api.log_dir_questions import Asked, move
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

NOT_FOUND, UNKNOWN = ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
LONGEST_TOPIC = 255 - len("-0.") - 32 - len("-future")


@pytest.fixture
def place(client: WireClient) -> str:
    (only,) = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results
    return only.log_dir


@pytest.mark.parametrize("version", [1, 2])
def test_every_version(client: WireClient, topic: str, place: str, version: int) -> None:
    create_topic(client, topic, partitions=2)
    asked: Asked = [(place, [(topic, [0, 1, 7])]), ("/nowhere", [("nope", [0])])]
    assert move(client, asked, version) == {topic: {0: 0, 1: 0, 7: UNKNOWN}, "nope": {0: NOT_FOUND}}


def test_a_path_counts_letter_for_letter(client: WireClient, topic: str, place: str) -> None:
    create_topic(client, topic)
    for path in ("", "data", place + "/", place + "/../" + place.rpartition("/")[2], "/nowhere"):
        asked: Asked = [(path, [(topic, [0, 9]), ("nope", [0])])]
        assert move(client, asked) == {topic: {0: NOT_FOUND, 9: NOT_FOUND}, "nope": {0: NOT_FOUND}}


def test_what_does_not_exist(client: WireClient, topic: str, place: str) -> None:
    create_topic(client, topic)
    asked: Asked = [(place, [("nope", [0]), ("a b", [0]), ("", [-1]), (topic, [-1, 1, 2**31 - 1])])]
    assert move(client, asked) == {
        "nope": {0: UNKNOWN},
        "a b": {0: UNKNOWN},
        "": {-1: UNKNOWN},
        topic: {-1: UNKNOWN, 1: UNKNOWN, 2**31 - 1: UNKNOWN},
    }


def test_a_name_that_is_too_long_for_a_future_directory(client: WireClient, place: str) -> None:
    fits, too_long = "f" * LONGEST_TOPIC, "l" * (LONGEST_TOPIC + 1)
    create_topic(client, fits)
    create_topic(client, too_long)
    invalid = ErrorCode.INVALID_TOPIC_EXCEPTION
    assert move(client, [(place, [(fits, [0, 1]), (too_long, [0])])]) == {
        fits: {0: 0, 1: UNKNOWN},
        too_long: {0: invalid},
    }
    assert move(client, [("/nowhere", [(fits, [0, 10]), (too_long, [0])])]) == {
        fits: {0: NOT_FOUND, 10: invalid},
        too_long: {0: invalid},
    }


def test_nothing_and_twice(client: WireClient, topic: str, place: str) -> None:
    create_topic(client, topic)
    nothing: list[Asked] = [[], [(place, [])], [(place, [(topic, [])])]]
    assert [move(client, asked) for asked in nothing] == [{}, {}, {}]
    assert move(client, [(place, [(topic, [0, 0]), (topic, [0])])]) == {topic: {0: 0}}
    # The last wish counts.
    assert move(client, [(place, [(topic, [0])]), ("/nowhere", [(topic, [0])])]) == {topic: {0: NOT_FOUND}}
    assert move(client, [("/nowhere", [(topic, [0])]), (place, [(topic, [0])])]) == {topic: {0: 0}}
