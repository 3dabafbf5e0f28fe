import asyncio

import pytest

from ottla.runtime.promise import Promise


def test_a_value_is_told_at_once_and_to_those_who_come_later() -> None:
    promise: Promise[int] = Promise()
    told: list[int] = []
    promise.add_done_callback(lambda kept: told.append(kept.result()))
    assert not promise.done()
    promise.resolve(3)
    assert told == [3]
    promise.add_done_callback(lambda kept: told.append(kept.result() + 1))
    assert told == [3, 4]
    assert promise.done()
    assert not promise.cancelled()
    assert promise.exception() is None


def test_it_is_kept_once() -> None:
    promise: Promise[int] = Promise()
    told: list[int] = []
    promise.add_done_callback(lambda kept: told.append(kept.result()))
    promise.resolve(1)
    promise.resolve(2)
    promise.reject(ValueError("late"))
    assert not promise.cancel()
    assert told == [1]


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    promise: Promise[int] = Promise()
    promise.reject(ValueError("broken"))
    assert str(promise.exception()) == "broken"
    with pytest.raises(ValueError, match="broken"):
        promise.result()


def test_a_cancelled_promise_is_told_too() -> None:
    promise: Promise[int] = Promise()
    told: list[bool] = []
    promise.add_done_callback(lambda kept: told.append(kept.cancelled()))
    assert promise.cancel()
    assert told == [True]
    for ask in (promise.result, promise.exception):
        with pytest.raises(asyncio.CancelledError):
            ask()


def test_no_result_before_it_is_there() -> None:
    with pytest.raises(asyncio.InvalidStateError):
        Promise[int]().result()
