"""docs/CLIENT_SUITES.md: what came of the last `make compat`, test by test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tests.compat.suites.runner import Comparison
from tests.compat.suites.suite import Outcome, Result
from tests.peers.paths import KAFKA_VERSION

_HEAD = """\
# Client libraries' own suites

`make compat` takes the test suites that client libraries are published with, runs them unchanged against Ottla and then
against Apache Kafka {kafka}, and writes this page. What passes on Kafka must pass here. Tests that need an API which is
not served yet are left out, and run by themselves once ApiVersions lists it; the lists are in `tests/compat/suites`.

Last run: {day}.

| suite | language | tests | passed on Kafka | passed on Ottla | left out on Ottla | worse than on Kafka |
|-------|----------|-------|-----------------|-----------------|-------------------|---------------------|
"""


def render(comparisons: Sequence[Comparison], day: date) -> str:
    parts = [_HEAD.format(kafka=KAFKA_VERSION, day=day.isoformat())]
    parts += [_summary(comparison) for comparison in comparisons]
    for comparison in comparisons:
        suite = comparison.suite
        parts.append(f"\n## {suite.name} {suite.version}\n\n")
        parts.append("| test | Apache Kafka | Ottla |\n|------|--------------|-------|\n")
        for name, outcome in comparison.ottla.outcomes.items():
            parts.append(f"| `{name}` | {_cell(comparison.kafka.outcomes[name])} | {_cell(outcome)} |\n")
    return "".join(parts)


def _summary(comparison: Comparison) -> str:
    suite, ottla, kafka = comparison.suite, comparison.ottla, comparison.kafka
    cells = (
        f"{suite.name} {suite.version}",
        suite.language,
        len(ottla.outcomes),
        kafka.count(Result.PASSED),
        ottla.count(Result.PASSED),
        ottla.count(Result.LEFT_OUT),
        len(comparison.worse()),
    )
    return f"| {' | '.join(map(str, cells))} |\n"


def _cell(outcome: Outcome) -> str:
    note = outcome.note.replace("|", "/")
    match outcome.result:
        case Result.PASSED:
            return f"passed{f', {note}' if note else ''}"
        case Result.FAILED:
            return "failed"
        case _:
            return f"{outcome.result}: {note}"
