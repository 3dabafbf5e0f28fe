"""What follows when a new leader's log may lack what was read."""

from __future__ import annotations

import pytest
from tests.unit.client.consumer.stored import batch, chunk

from ottla.client.consumer.lookups import Verdict, judge
from ottla.client.consumer.positions import PartitionState, Phase, Position
from ottla.client.consumer.settings import ResetPolicy
from ottla.client.errors import LogTruncated, NotAuthorized
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_for_leader_epoch import EpochEndOffset

EARLIEST, NONE = ResetPolicy("earliest"), ResetPolicy("none")


def standing(offset: int = 50, buffered: int = 0) -> PartitionState:
    state = PartitionState("orders", 0)
    state.stand_at(Position(offset, 3))
    state.see_leader_epoch(3)
    if buffered:
        state.extend(chunk(batch([b"x"] * buffered, offset, epoch=3), offset), 3)
    return state


def answer(end_offset: int, epoch: int = 3, code: ErrorCode = ErrorCode.NONE) -> EpochEndOffset:
    return EpochEndOffset(error_code=code, partition=0, leader_epoch=epoch, end_offset=end_offset)


def test_a_new_leader_puts_what_was_read_in_doubt() -> None:
    state = standing(buffered=2)
    phases = []
    for epoch in (3, 4):
        state.see_leader_epoch(epoch)
        phases.append(state.phase)
    assert phases == [Phase.FETCHING, Phase.VALIDATING]


def test_a_position_without_an_epoch_cannot_be_doubted() -> None:
    state = PartitionState("orders", 0)
    state.stand_at(Position(50))
    state.see_leader_epoch(3)
    state.see_leader_epoch(4)
    assert state.phase is Phase.FETCHING


def test_a_log_that_still_has_it_is_read_on() -> None:
    assert judge(standing(), answer(50), EARLIEST) == Verdict(is_valid=True)
    assert judge(standing(buffered=2), answer(52), NONE) == Verdict(is_valid=True)


def test_what_is_only_buffered_is_given_up_first() -> None:
    assert judge(standing(buffered=2), answer(51), NONE) == Verdict(drop_buffered=True)


def test_reading_goes_on_where_the_logs_parted() -> None:
    assert judge(standing(), answer(40, 2), EARLIEST) == Verdict(go_to=Position(40, 2))


def test_without_a_common_epoch_the_policy_decides() -> None:
    assert judge(standing(), answer(-1, -1), EARLIEST) == Verdict(is_reset=True)


@pytest.mark.parametrize(("end_offset", "epoch"), [(40, 2), (-1, -1)])
def test_without_a_policy_the_user_decides(end_offset: int, epoch: int) -> None:
    verdict = judge(standing(), answer(end_offset, epoch), NONE)
    assert isinstance(verdict.error, LogTruncated)
    assert "orders-0 was truncated below offset 50" in str(verdict.error)


def test_leaders_that_moved_again_are_asked_again() -> None:
    assert judge(standing(), answer(-1, -1, ErrorCode.FENCED_LEADER_EPOCH), EARLIEST).is_retried


def test_a_refusal_is_an_error() -> None:
    verdict = judge(standing(), answer(-1, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED), EARLIEST)
    assert isinstance(verdict.error, NotAuthorized)
