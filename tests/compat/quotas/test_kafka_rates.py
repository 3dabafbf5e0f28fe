"""The same clients, limits and moments given to Kafka's own classes and to ours: the same times to wait."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.compat.quotas.oracle import KafkaQuotas

from ottla.broker.dispatch import RequestContext
from ottla.broker.quotas.broker_quotas import ANONYMOUS, BrokerQuotas
from ottla.broker.quotas.rates import Windows
from ottla.cluster.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    ClientQuotas,
    QuotaEntity,
)
from ottla.protocol.errors import KafkaError
from ottla.testing import ManualClock

# Far from 0, where a bucket of Kafka's that was never used is full.
START_MS = 1_000_000_000
KEYS = {"produce": PRODUCER_BYTE_RATE, "request": REQUEST_PERCENTAGE, "mutation": CONTROLLER_MUTATION_RATE}
SHAPES = [(11, 1), (2, 1), (1, 1), (4, 3)]
QUESTIONS = 1500

Question = tuple[object, ...]


class OurQuotas:
    """Answers the oracle's questions in its words."""

    def __init__(self, samples: int, window_seconds: int) -> None:
        self._clock = ManualClock()
        windows = Windows(samples, window_seconds * 1000)
        self._quotas = BrokerQuotas(self._clock, windows, windows)
        self._limits: dict[QuotaEntity, dict[str, float]] = {}
        self._now_ms = START_MS
        self._clock.advance(START_MS)

    def answer(self, question: Question) -> list[str]:
        word, *rest = question
        found: object = getattr(self, f"_{word}")(*rest)
        return found if isinstance(found, list) else [str(found)]

    def _set_time(self, now_ms: int) -> None:
        self._clock.advance(now_ms - self._now_ms)
        self._now_ms = now_ms

    def _change(self, names: dict[str, str | None], key: str, value: object) -> str:
        limits = self._limits.setdefault(QuotaEntity.of(names), {})
        limits.pop(key, None)
        if value != "-":
            limits[key] = float(str(value))
        self._quotas.update(ClientQuotas({entity: dict(limits) for entity, limits in self._limits.items()}))
        self._quotas.update_addresses({})
        return "ok"

    def _limit(self, kind: str, user: str, client_id: str, value: object) -> str:
        given = ((USER, user), (CLIENT_ID, client_id))
        return self._change(
            {kind: None if name == "*" else name for kind, name in given if name != "-"}, KEYS[kind], value
        )

    def _record(self, kind: str, client_id: str, amount: float, now_ms: int) -> int:
        self._set_time(now_ms)
        return self._quotas.by_key[KEYS[kind]].record(ANONYMOUS, client_id, amount, self._quotas.now_ms())

    def _unrecord(self, kind: str, client_id: str, amount: float, now_ms: int) -> str:
        self._set_time(now_ms)
        self._quotas.by_key[KEYS[kind]].unrecord(ANONYMOUS, client_id, amount, self._quotas.now_ms())
        return "ok"

    def _mutate(self, client_id: str, manner: str, now_ms: int, *counts: int) -> list[str]:
        self._set_time(now_ms)
        context = RequestContext(None, 1, 0, client_id)  # type: ignore[arg-type]  # nobody is connected
        charge = self._quotas.charge(context, 1 if manner == "strict" else 2)
        answers = []
        for number, count in enumerate(counts):
            try:
                charge(str(number), count)
                answers.append("done")
            except KafkaError:
                answers.append("refused")
        return [*answers, str(charge.throttle_ms())]

    def _address(self, host: str, limit: object) -> str:
        return self._change({IP: None if host == "*" else host}, CONNECTION_CREATION_RATE, limit)

    def _connect(self, host: str, now_ms: int) -> int:
        self._set_time(now_ms)
        return self._quotas.connections.connected(host)


def moments(dice: random.Random, window_ms: int, far_apart: float = 1.0) -> Iterator[int]:
    """Close together, at the edges of windows, and some of them far apart."""
    now_ms = START_MS
    while True:
        yield now_ms
        if dice.random() >= far_apart:
            now_ms += dice.choice((0, 0, 1, 20))
            continue
        now_ms += dice.choice(
            (0, 0, 1, 7, 100, window_ms - 1, window_ms, window_ms + 1, dice.randrange(40 * window_ms))
        )


def limit_questions(dice: random.Random, kind: str) -> Question:
    user, client_id = dice.choice([("-", "a"), ("-", "*"), ("*", "-"), ("ANONYMOUS", "-"), ("ANONYMOUS", "a"),
                                   ("ANONYMOUS", "*"), ("*", "a"), ("*", "*"), ("bob", "a"), ("bob", "-")])  # fmt: skip
    value: object = "-" if dice.random() < 0.4 else dice.choice((1, 10, 1000, 100_000, 0.5, 12.5))
    return ("limit", kind, user, client_id, value)


@pytest.mark.parametrize(("samples", "window_seconds"), SHAPES)
@pytest.mark.parametrize("seed", range(2))
def test_clients_wait_as_long_as_with_kafka(
    kafka_quotas: KafkaQuotas, samples: int, window_seconds: int, seed: int
) -> None:
    dice = random.Random(f"clients {samples} {window_seconds} {seed}")
    times = moments(dice, window_seconds * 1000)
    questions: list[Question] = [("new", samples, window_seconds)]
    for _ in range(QUESTIONS):
        kind = dice.choice(("produce", "request"))
        client_id = dice.choice(("a", "b", "c", ""))
        amount = dice.choice((0.0, 1.0, 3.25, 100.0, float(dice.randrange(100_000))))
        questions.append(
            limit_questions(dice, kind)
            if dice.random() < 0.06
            else (dice.choice(("record", "record", "unrecord")), kind, client_id, amount, next(times))
        )
    compare(kafka_quotas, questions, samples, window_seconds)


@pytest.mark.parametrize(("samples", "window_seconds"), SHAPES)
@pytest.mark.parametrize("seed", range(2))
def test_mutations_are_refused_when_kafka_refuses_them(
    kafka_quotas: KafkaQuotas, samples: int, window_seconds: int, seed: int
) -> None:
    dice = random.Random(f"mutations {samples} {window_seconds} {seed}")
    times = moments(dice, window_seconds * 1000)
    questions: list[Question] = [("new", samples, window_seconds)]
    for _ in range(QUESTIONS):
        counts = [dice.choice((1, 1, 5, 50, 1000)) for _ in range(dice.randrange(1, 4))]
        questions.append(
            limit_questions(dice, "mutation")
            if dice.random() < 0.06
            else ("mutate", dice.choice(("a", "b", "")), dice.choice(("strict", "permissive")), next(times), *counts)
        )
    compare(kafka_quotas, questions, samples, window_seconds)


@pytest.mark.parametrize(("samples", "window_seconds"), SHAPES)
def test_addresses_are_turned_away_when_kafka_turns_them_away(
    kafka_quotas: KafkaQuotas, samples: int, window_seconds: int
) -> None:
    dice = random.Random(f"addresses {samples} {window_seconds}")
    times = moments(dice, window_seconds * 1000, far_apart=0.05)
    questions: list[Question] = [("new", samples, window_seconds)]
    for _ in range(QUESTIONS):
        host = dice.choice(("10.0.0.1", "10.0.0.2", "2001:db8::1"))
        questions.append(
            ("address", dice.choice((host, "*")), dice.choice(("-", 1, 2, 20)))
            if dice.random() < 0.03
            else ("connect", host, next(times))
        )
    compare(kafka_quotas, questions, samples, window_seconds)


def compare(kafka: KafkaQuotas, questions: list[Question], samples: int, window_seconds: int) -> None:
    ours = OurQuotas(samples, window_seconds)
    waits = 0
    for number, (question, theirs) in enumerate(zip(questions[1:], kafka.ask_all(questions)[1:], strict=True)):
        answer = ours.answer(question)
        assert answer == theirs, (number, questions[max(0, number - 10) : number + 2])
        waits += theirs[-1] not in ("0", "ok")
    assert waits > 20, "the questions are too easy"
