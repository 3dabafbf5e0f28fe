"""The same questions for Ottla and for Apache Kafka: they agree, or docs/COMPATIBILITY.md says why not."""

import pytest
from tests.compat.questions.excuses import excused_in_all, read_excuses
from tests.compat.questions.verdict import COMING, Verdict

from ottla.broker.dispatch import registered_handlers

pytestmark = pytest.mark.timeout(900)

LEAST_QUESTIONS = 3_000
# ApiVersions before version 3 is an empty request: not much can be wrong with it.
LEAST_OF_A_VERSION = 4
SHOWN = 40


def test_the_answers_agree(verdict: Verdict) -> None:
    findings = [str(finding) for finding in verdict.findings]
    assert not findings, f"{len(findings)} differences that nothing excuses:\n" + "\n".join(findings[:SHOWN])


def test_no_excuse_covers_more_than_it_did(verdict: Verdict) -> None:
    grown = [
        f"{verdict.excused[excuse]} instead of {excuse.cases}: {excuse}"
        for excuse in read_excuses()
        if verdict.excused[excuse] > excuse.cases
    ]
    assert not grown, "\n".join(grown)
    assert verdict.excused_questions <= excused_in_all()


def test_every_excuse_is_needed(verdict: Verdict) -> None:
    unused = [str(excuse) for excuse in read_excuses() if not verdict.excused[excuse]]
    assert not unused, "\n".join(unused)


def test_every_version_of_every_api_is_asked_about(verdict: Verdict) -> None:
    assert verdict.asked >= LEAST_QUESTIONS
    rarely = [
        f"{handler.api_key.name} v{version}: {verdict.questions[handler.api_key, version]}"
        for handler in registered_handlers().values()
        for version in range(handler.min_version, handler.max_version + 1)
        if verdict.questions[handler.api_key, version] < LEAST_OF_A_VERSION
    ]
    assert not rarely, "\n".join(rarely)


def test_questions_about_what_is_coming_are_understood(verdict: Verdict) -> None:
    served = set(registered_handlers())
    asked = {case.api for case, _ in verdict.kafka_alone}
    assert asked == {key for key in COMING if key not in served}
    unanswered = [
        f"{case.title}: {outcome.kind} {outcome.answer}"
        for case, outcomes in verdict.kafka_alone
        for outcome in outcomes
        if outcome.kind != "answered"
    ]
    assert not unanswered, "\n".join(unanswered)
