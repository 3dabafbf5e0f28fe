"""What a fetch session leaves out of a request, and what it does about errors."""

from __future__ import annotations

from ottla.client.consumer.sessions import Ask, FetchSession, Wanted
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode

A, B, C = (TopicPartition("t", number) for number in range(3))
ID, OTHER_ID = b"1" * 16, b"2" * 16


def want(offset: int, topic_id: bytes = ID) -> Wanted:
    return Wanted(topic_id, offset, 5, 1000)


def begun() -> FetchSession:
    session = FetchSession()
    assert session.ask({A: want(0), B: want(0)}) == Ask(0, 0, {A: want(0), B: want(0)}, {})
    assert session.answered(0, 77)
    return session


def test_a_further_request_names_only_what_changed() -> None:
    session = begun()
    assert session.ask({A: want(5), B: want(0)}) == Ask(77, 1, {A: want(5)}, {})
    assert session.answered(0, 77)
    assert session.ask({A: want(5), B: want(0)}) == Ask(77, 2, {}, {})


def test_partitions_that_come_and_go_are_told() -> None:
    session = begun()
    assert session.ask({B: want(0), C: want(9)}) == Ask(77, 1, {C: want(9)}, {A: ID})
    assert session.answered(0, 77)
    assert session.ask({A: want(0), B: want(0), C: want(9)}) == Ask(77, 2, {A: want(0)}, {})


def test_a_topic_that_was_created_again_is_forgotten_under_its_old_id() -> None:
    session = begun()
    assert session.ask({A: want(0, OTHER_ID), B: want(0)}) == Ask(77, 1, {A: want(0, OTHER_ID)}, {A: ID})
    assert session.answered(0, 77)
    assert session.ask({A: want(0, OTHER_ID), B: want(0)}) == Ask(77, 2, {}, {})


def test_without_a_session_everything_is_named_every_time() -> None:
    session = FetchSession()
    for _ in range(2):
        assert session.ask({A: want(0)}) == Ask(0, 0, {A: want(0)}, {})
        assert session.answered(0, 0)


def test_a_session_that_the_broker_forgot_is_begun_anew() -> None:
    session = begun()
    session.ask({A: want(1), B: want(0)})
    assert not session.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.ask({A: want(1)}) == Ask(0, 0, {A: want(1)}, {})


def test_a_session_that_is_out_of_step_is_closed_with_the_next_request() -> None:
    session = begun()
    session.ask({A: want(1), B: want(0)})
    assert not session.answered(ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    assert session.ask({A: want(1)}) == Ask(77, 0, {A: want(1)}, {})
    assert session.answered(0, 78)
    assert session.ask({A: want(2)}).session_id == 78


def test_a_request_without_an_answer_begins_a_new_session() -> None:
    session = begun()
    session.ask({A: want(1), B: want(0)})
    session.failed()
    assert session.ask({A: want(1), B: want(0)}) == Ask(77, 0, {A: want(1), B: want(0)}, {})


def test_an_answer_of_another_session_is_not_believed() -> None:
    session = begun()
    session.ask({A: want(1), B: want(0)})
    assert not session.answered(0, 99)
    assert session.ask({A: want(1)}).epoch == 0


def test_epochs_go_on_from_one_after_the_last() -> None:
    session = begun()
    session.epoch = 2**31 - 1
    session.ask({A: want(1), B: want(0)})
    assert session.answered(0, 77)
    assert session.epoch == 1
