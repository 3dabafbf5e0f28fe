"""What clients use of their quotas, as metrics. Only what is limited is measured, so only that is told.

Clients choose their ids, and each has series of its own, so there are the `CLIENTS_SHOWN` latest of each kind.
"""

import math
from collections.abc import Callable, Iterator

from ottla.broker.metrics_text import GAUGE, Family
from ottla.broker.quotas.broker_quotas import BrokerQuotas
from ottla.broker.quotas.clients import ClientQuota, ClientUse

CLIENTS_SHOWN = 1000
LABELS = ("user", "client_id")

PRODUCE_RATE = Family("kafka_server_produce_byte_rate", GAUGE, "Bytes of requests that a producer sends.", LABELS)
FETCH_RATE = Family("kafka_server_fetch_byte_rate", GAUGE, "Bytes of answers that a consumer gets.", LABELS)
REQUEST_TIME = Family(
    "kafka_server_request_request_time", GAUGE, "Percent of one processor that a client's requests take.", LABELS
)
MUTATION_RATE = Family(
    "kafka_server_controllermutation_mutation_rate", GAUGE, "Partitions that a client creates and deletes.", LABELS
)
TOKENS = Family(
    "kafka_server_controllermutation_tokens", GAUGE, "How many more partitions it may create or delete at once.", LABELS
)


def _throttle_time(kind: str) -> Family:
    text = "How many milliseconds a client was made to wait, on average of the times it was."
    return Family(f"kafka_server_{kind}_throttle_time", GAUGE, text, LABELS)


Series = Callable[[ClientUse, int], float]


def _rate(use: ClientUse, now_ms: int) -> float:
    return use.rate.rate(now_ms)


def _tokens(use: ClientUse, now_ms: int) -> float:
    return 0.0 if use.bucket is None else use.bucket.tokens(use.limit, now_ms)


def _throttle_times(use: ClientUse, now_ms: int) -> float:
    return use.throttle_times.average(now_ms)


_SHOWN: tuple[tuple[Callable[[BrokerQuotas], ClientQuota], Family, Series], ...] = (
    (lambda quotas: quotas.produce, PRODUCE_RATE, _rate),
    (lambda quotas: quotas.produce, _throttle_time("produce"), _throttle_times),
    (lambda quotas: quotas.fetch, FETCH_RATE, _rate),
    (lambda quotas: quotas.fetch, _throttle_time("fetch"), _throttle_times),
    (lambda quotas: quotas.request, REQUEST_TIME, _rate),
    (lambda quotas: quotas.request, _throttle_time("request"), _throttle_times),
    (lambda quotas: quotas.mutation, MUTATION_RATE, _rate),
    (lambda quotas: quotas.mutation, TOKENS, _tokens),
    (lambda quotas: quotas.mutation, _throttle_time("controllermutation"), _throttle_times),
)
FAMILIES = tuple(family for _, family, _ in _SHOWN)


def quota_lines(quotas: BrokerQuotas) -> Iterator[str]:
    now_ms = quotas.now_ms()
    for quota_of, family, value_of in _SHOWN:
        yield family.head
        for (user, client_id), use in quota_of(quotas).latest(CLIENTS_SHOWN):
            value = value_of(use, now_ms)
            # There is no average where nobody was made to wait, and no number for what has no bound.
            yield family.line(value, user, client_id) if math.isfinite(value) else ""
