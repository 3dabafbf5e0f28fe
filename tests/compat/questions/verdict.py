"""Both brokers asked, and what came of it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.compat.questions import excuses
from tests.compat.questions.answers import Difference, differences
from tests.compat.questions.excuses import Excuse
from tests.compat.questions.generator import Form, all_cases
from tests.compat.questions.question import Case
from tests.compat.questions.side import Outcome, Side
from tests.compat.questions.stage import GROUP, SETTINGS, TRANSACTION, create, set_up, wait_for_coordinators
from tests.peers.kafka import KafkaBroker
from tests.peers.ottla import OttlaBroker

import ottla.broker.api  # registers the handlers
from ottla.broker.dispatch import registered_handlers
from ottla.protocol.api_keys import ApiKey

assert ottla.broker.api is not None
SEED = 20
COMING = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
)


@dataclass(frozen=True)
class Finding:
    """One ask whose answers differ in a way that nothing excuses."""

    case: Case
    ask: int
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        lines = [f"{self.case.title} (request {self.ask + 1} of {len(self.case.asks)})"]
        return "\n    ".join([*lines, *map(str, self.differences[:8])])


@dataclass
class Verdict:
    questions: Counter[tuple[ApiKey, int]] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    excused: Counter[Excuse] = field(default_factory=Counter)
    excused_questions: int = 0
    kafka_alone: list[tuple[Case, list[Outcome]]] = field(default_factory=list)

    @property
    def asked(self) -> int:
        return self.questions.total()


class Judge:
    """Compares outcomes, with the excuses at hand."""

    def __init__(self, known: Sequence[Excuse]) -> None:
        self._known = known

    def differences(
        self, case: Case, number: int, kafka: Outcome, ottla: Outcome
    ) -> tuple[list[Difference], set[Excuse]]:
        """What is not excused, and the excuses that were needed."""
        open_ones: list[Difference] = []
        needed: set[Excuse] = set()
        for difference in _found(kafka, ottla):
            excuse = excuses.find(self._known, case, number + 1, difference)
            if excuse is None:
                open_ones.append(difference)
            else:
                needed.add(excuse)
        return open_ones, needed

    def judge(self, cases: Sequence[Case], kafka: list[list[Outcome]], ottla: list[list[Outcome]]) -> Verdict:
        verdict = Verdict()
        for case, theirs, ours in zip(cases, kafka, ottla, strict=True):
            for number in range(len(case.asks)):
                verdict.questions[case.asks[number].api, case.asks[number].version] += 1
                open_ones, needed = self.differences(case, number, theirs[number], ours[number])
                if open_ones:
                    verdict.findings.append(Finding(case, number, tuple(open_ones)))
                verdict.excused.update(needed)
                verdict.excused_questions += bool(needed)
        return verdict


def _found(kafka: Outcome, ottla: Outcome) -> Iterator[Difference]:
    if kafka.kind != ottla.kind:
        yield Difference("outcome", "outcome", kafka.kind, ottla.kind)
    elif kafka.kind == "answered":
        yield from differences(kafka.answer, ottla.answer)


def ask_both(directory: Path, form: Form, seed: int = SEED, known: Sequence[Excuse] | None = None) -> Verdict:
    """Ask Ottla while Kafka starts, then Kafka, which is asked again where its answers are about to agree.

    What Ottla does not serve yet but soon will is asked of Kafka alone.
    """
    served = [ApiKey(key) for key in registered_handlers()]
    cases = all_cases(seed, form, served)
    judge = Judge(excuses.read_excuses() if known is None else known)
    kafka_broker = KafkaBroker(directory / "kafka", heap="512m", properties=SETTINGS)
    try:
        with ThreadPoolExecutor(1) as pool:
            starting = pool.submit(kafka_broker.start)
            with OttlaBroker(directory / "ottla", properties=SETTINGS) as broker:
                ottla = _answers(Side("ottla", broker.port or 0, str(broker.data_directory)), cases)
            starting.result()
        side = Side("kafka", kafka_broker.port or 0, str(kafka_broker.data_directory))
        verdict = judge.judge(cases, _kafka_answers(side, judge, cases, ottla), ottla)
        alone = _kafka_alone(seed, form, served)
        create(side, [topic for case in alone for topic in case.topics])
        verdict.kafka_alone = list(zip(alone, side.answer_all(alone), strict=True))
        return verdict
    finally:
        kafka_broker.kill()


def _kafka_alone(seed: int, form: Form, served: Sequence[ApiKey]) -> list[Case]:
    coming = [key for key in COMING if key not in served]
    return [case for case in all_cases(seed, form, coming, "k") if not case.alone]


def _kafka_answers(side: Side, judge: Judge, cases: Sequence[Case], ottla: list[list[Outcome]]) -> list[list[Outcome]]:
    numbers = {id(case): number for number, case in enumerate(cases)}

    def agrees(case: Case, ask: int, outcome: Outcome) -> bool:
        return not judge.differences(case, ask, outcome, ottla[numbers[id(case)]][ask])[0]

    set_up(side, [topic for case in cases for topic in case.topics])
    late = _first_late(cases)
    answers = side.answer_all(cases[:late], agrees)
    wait_for_coordinators(side)
    return [*answers, *side.answer_all(cases[late:], agrees)]


def _answers(side: Side, cases: Sequence[Case]) -> list[list[Outcome]]:
    set_up(side, [topic for case in cases for topic in case.topics])
    late = _first_late(cases)
    answers = side.answer_all(cases[:late])
    served = registered_handlers()
    kinds = {GROUP: ApiKey.OFFSET_COMMIT, TRANSACTION: ApiKey.END_TXN}
    wait_for_coordinators(side, [kind for kind, api in kinds.items() if api in served])
    return [*answers, *side.answer_all(cases[late:])]


def _first_late(cases: Sequence[Case]) -> int:
    return next((number for number, case in enumerate(cases) if case.late), len(cases))
