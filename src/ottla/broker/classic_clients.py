"""Requests of classic group members, on their way to the group and back."""

import ipaddress
from collections.abc import Callable
from typing import TypeVar

from ottla.broker.dispatch import RequestContext
from ottla.groups.classic import Client
from ottla.ledger.ledger import told
from ottla.protocol.errors import KafkaError
from ottla.runtime.promise import Promise

Answer = TypeVar("Answer")


def client_of(context: RequestContext) -> Client:
    return Client(context.client_id or "", f"/{java_form(context.connection.peer_host)}", context.api_version)


def java_form(host: str) -> str:
    """As Java writes an address: groups of an IPv6 one are neither left out nor padded."""
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def answered_later(
    decided: Promise[Promise[Answer]],
    refuse: Callable[[KafkaError], Answer],
    finish: Callable[[Answer], Answer] = lambda answer: answer,
) -> Promise[Answer]:
    """The answer that was decided on, or what `refuse` makes of a refusal; `finish` has the last word.

    The decision may be to wait. A client that gives up is not waited for any more.
    """
    answer: Promise[Answer] = Promise()

    def settle(source: Promise[Promise[Answer]]) -> None:
        error = source.exception()
        if error is not None:
            answer.resolve(finish(refuse(told(error))))
            return
        waiting = source.result()

        def given_up(_: Promise[Answer]) -> None:
            waiting.cancel()

        answer.add_done_callback(given_up)
        waiting.add_done_callback(kept)

    def kept(source: Promise[Answer]) -> None:
        if not source.cancelled():
            answer.resolve(finish(source.result()))

    decided.add_done_callback(settle)
    return answer
