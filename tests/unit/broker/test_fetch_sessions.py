"""Fetch sessions against the table of KIP-227."""

from typing import Any

import pytest
from tests.unit.broker.doubles import Dice

from ottla.broker.fetch_sessions import LAST_EPOCH, FetchContext, FetchSessions
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from ottla.protocol.uuids import ZERO_UUID
from ottla.testing import ManualClock

BY_NAME, BY_ID = 12, 13
FULL_WITHOUT_SESSION, FIRST = -1, 0


def request(
    session_id: int, epoch: int, *partitions: int, forget: tuple[int, ...] = (), topic_id: bytes = ZERO_UUID
) -> FetchRequest:
    """A fetch of partitions of one topic, which is named by its id if one is given."""
    wanted = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in partitions]
    name = "t" if topic_id == ZERO_UUID else ""
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=wanted)] if wanted else [],
        forgotten_topics_data=(
            [ForgottenTopic(topic=name, topic_id=topic_id, partitions=list(forget))] if forget else []
        ),
    )


def sessions(slots: int = 10, clock: ManualClock | None = None, dice: Dice | None = None) -> FetchSessions:
    return FetchSessions(slots, clock or ManualClock(), dice or Dice())


def opened(held: FetchSessions, *partitions: int, version: int = BY_NAME, topic_id: bytes = ZERO_UUID) -> int:
    session_id = held.context(request(0, FIRST, *partitions, topic_id=topic_id), version).session_id
    assert session_id > 0
    return session_id


def partitions_of(context: FetchContext) -> list[int]:
    return [target.request.partition for target in context.targets]


def data(index: int, high_watermark: int = 5, log_start_offset: int = 0, **other: Any) -> PartitionData:
    return PartitionData(
        partition_index=index, high_watermark=high_watermark, log_start_offset=log_start_offset, **other
    )


def answered(context: FetchContext, *answers: PartitionData) -> list[int]:
    """The partitions that stay in the answer."""
    by_index = {answer.partition_index: answer for answer in answers}
    pairs = [(target, by_index[target.request.partition]) for target in context.targets]
    return [answer.partition_index for _, answer in context.select(pairs)]


def refused(held: FetchSessions, fetch: FetchRequest, version: int = BY_NAME) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        held.context(fetch, version)
    return caught.value.code


# The rows of the table


def test_a_full_fetch_without_session_leaves_nothing_behind() -> None:
    held = sessions()
    context = held.context(request(0, FULL_WITHOUT_SESSION, 0, 1), BY_NAME)
    assert (context.session_id, partitions_of(context), len(held)) == (0, [0, 1], 0)
    assert answered(context, data(0), data(1)) == [0, 1]


def test_epoch_minus_one_closes_a_session() -> None:
    held = sessions()
    session_id = opened(held, 0)
    context = held.context(request(session_id, FULL_WITHOUT_SESSION, 1), BY_NAME)
    assert (context.session_id, partitions_of(context), len(held)) == (0, [1], 0)
    assert refused(held, request(session_id, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_epoch_zero_opens_a_session_in_place_of_the_old_one() -> None:
    held = sessions()
    old = opened(held, 0)
    context = held.context(request(old, FIRST, 1, 2), BY_NAME)
    assert context.session_id not in (0, old)
    assert len(held) == 1
    assert answered(context, data(1), data(2)) == [1, 2]


def test_incremental_fetches_count_up() -> None:
    held = sessions()
    session_id = opened(held, 0, 1)
    for epoch in (1, 2, 3):
        context = held.context(request(session_id, epoch), BY_NAME)
        assert (context.session_id, partitions_of(context)) == (session_id, [0, 1])


# What goes wrong


def test_a_session_that_is_not_there() -> None:
    assert refused(sessions(), request(42, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [2, 3, LAST_EPOCH, -2])
def test_an_epoch_out_of_line(epoch: int) -> None:
    held = sessions()
    session_id = opened(held, 0)
    assert refused(held, request(session_id, epoch)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert partitions_of(held.context(request(session_id, 1), BY_NAME)) == [0]


def test_an_epoch_cannot_be_used_twice() -> None:
    held = sessions()
    session_id = opened(held, 0)
    held.context(request(session_id, 1), BY_NAME)
    assert refused(held, request(session_id, 1)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_keeps_to_names_or_to_ids() -> None:
    held = sessions()
    by_name = opened(held, 0)
    by_id = opened(held, 0, version=BY_ID, topic_id=b"i" * 16)
    assert refused(held, request(by_name, 1), BY_ID) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert refused(held, request(by_id, 1), BY_NAME) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_after_the_last_epoch_comes_one() -> None:
    held = sessions()
    context = held.context(request(0, FIRST, 0), BY_NAME)
    assert context.session is not None
    context.session.epoch = LAST_EPOCH
    held.context(request(context.session_id, LAST_EPOCH), BY_NAME)
    assert partitions_of(held.context(request(context.session_id, 1), BY_NAME)) == [0]


# Which partitions are read


def test_partitions_are_added_changed_and_forgotten() -> None:
    held = sessions()
    session_id = opened(held, 0, 1)
    fetch = request(session_id, 1, 1, 2, forget=(0,))
    fetch.topics[0].partitions[0].fetch_offset = 77
    context = held.context(fetch, BY_NAME)
    assert partitions_of(context) == [1, 2]
    assert context.targets[0].request.fetch_offset == 77


def test_partitions_by_id_are_forgotten_by_id() -> None:
    held, topic_id = sessions(), b"i" * 16
    session_id = opened(held, 0, 1, version=BY_ID, topic_id=topic_id)
    context = held.context(request(session_id, 1, forget=(0,), topic_id=topic_id), BY_ID)
    assert partitions_of(context) == [1]


def test_a_partition_named_twice_is_read_once() -> None:
    assert partitions_of(sessions().context(request(0, FIRST, 0, 0, 1), BY_NAME)) == [0, 1]


def test_a_session_without_partitions_is_closed() -> None:
    held = sessions()
    session_id = opened(held, 0)
    context = held.context(request(session_id, 1, forget=(0,)), BY_NAME)
    assert (context.session_id, context.targets, len(held)) == (0, [], 0)


def test_who_had_records_goes_to_the_end_of_the_line() -> None:
    held = sessions()
    session_id = opened(held, 0, 1, 2)
    context = held.context(request(session_id, 1), BY_NAME)
    answered(context, data(0, records=b"batch"), data(1), data(2))
    assert partitions_of(held.context(request(session_id, 2), BY_NAME)) == [1, 2, 0]


# What is left out of an incremental answer


def test_what_the_client_knows_is_left_out() -> None:
    held = sessions()
    first = held.context(request(0, FIRST, 0, 1), BY_NAME)
    assert answered(first, data(0), data(1)) == [0, 1]
    assert answered(held.context(request(first.session_id, 1), BY_NAME), data(0), data(1)) == []


@pytest.mark.parametrize(
    "news",
    [
        data(0, records=b"batch"),
        data(0, high_watermark=6),
        data(0, log_start_offset=1),
        data(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE),
        data(0, diverging_epoch=EpochEndOffset(epoch=3, end_offset=2)),
        data(0, preferred_read_replica=2),
    ],
)
def test_what_is_new_is_answered(news: PartitionData) -> None:
    held = sessions()
    first = held.context(request(0, FIRST, 0, 1), BY_NAME)
    answered(first, data(0), data(1))
    assert answered(held.context(request(first.session_id, 1), BY_NAME), news, data(1)) == [0]


def test_an_error_is_repeated_and_the_good_answer_after_it_is_news() -> None:
    held = sessions()
    first = held.context(request(0, FIRST, 0), BY_NAME)
    answered(first, data(0))
    failed = data(0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answers = [failed, failed, data(0), data(0)]
    told = [
        answered(held.context(request(first.session_id, epoch), BY_NAME), answer)
        for epoch, answer in enumerate(answers, 1)
    ]
    assert told == [[0], [0], [0], []]


def test_a_partition_that_joins_is_news_although_others_are_not() -> None:
    held = sessions()
    first = held.context(request(0, FIRST, 0), BY_NAME)
    answered(first, data(0))
    joined = held.context(request(first.session_id, 1, 1), BY_NAME)
    assert answered(joined, data(0), data(1, high_watermark=0)) == [1]


# Bounds


def test_full_slots_mean_no_session_rather_than_no_answer() -> None:
    held = sessions(slots=1)
    opened(held, 0)
    context = held.context(request(0, FIRST, 1), BY_NAME)
    assert (context.session_id, partitions_of(context)) == (0, [1])
    assert answered(context, data(1)) == [1]


def test_no_slots_at_all() -> None:
    assert sessions(slots=0).context(request(0, FIRST, 0), BY_NAME).session_id == 0


def test_the_longest_unused_session_is_evicted_once_it_is_old_enough() -> None:
    clock = ManualClock()
    held = sessions(slots=2, clock=clock)
    first, second = opened(held, 0), opened(held, 0)
    clock.advance(119_000)
    held.context(request(first, 1), BY_NAME)
    assert held.context(request(0, FIRST, 0), BY_NAME).session_id == 0
    clock.advance(1_000)
    assert opened(held, 0)
    assert refused(held, request(second, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert partitions_of(held.context(request(first, 2), BY_NAME)) == [0]


def test_two_sessions_never_share_an_id() -> None:
    held = sessions(dice=Dice(7, 7, 7, 8))
    assert opened(held, 0) == 8
    assert opened(held, 0) == 9
