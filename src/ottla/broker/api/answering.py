"""From what a coordinator promises to the answer of a request."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla.protocol.errors import KafkaError
from ottla.runtime.promise import Promise

Value = TypeVar("Value")
Answer = TypeVar("Answer")


def answered(
    promise: Promise[Value], respond: Callable[[Value], Answer], refuse: Callable[[KafkaError], Answer]
) -> Promise[Answer]:
    """The answer that `respond` makes of a value and `refuse` of a refusal."""
    answer: Promise[Answer] = Promise()

    def done(source: Promise[Value]) -> None:
        try:
            try:
                made = respond(source.result())
            except KafkaError as error:
                made = refuse(error)
        except Exception as error:
            answer.reject(error)
        else:
            answer.resolve(made)

    promise.add_done_callback(done)
    return answer


def all_answered(promises: Sequence[Promise[Value]], respond: Callable[[list[Value]], Answer]) -> Promise[Answer]:
    """One answer made of several, in their order, once the last of them is there."""
    answer: Promise[Answer] = Promise()
    left = len(promises)

    def done(source: Promise[Value]) -> None:
        nonlocal left
        left -= 1
        error = source.exception()
        if error is not None:
            answer.reject(error)
        elif not left:
            answer.resolve(respond([promise.result() for promise in promises]))

    for promise in promises:
        promise.add_done_callback(done)
    if not promises:
        answer.resolve(respond([]))
    return answer
