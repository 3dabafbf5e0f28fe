"""The comparison itself: what it must notice, what it must not mind, and what an excuse covers."""

import pytest
from tests.compat.questions.answers import Difference, Known, differences, plain
from tests.compat.questions.excuses import Excuse, excused_in_all, read_excuses
from tests.compat.questions.generator import LONG, SHORT, all_cases
from tests.compat.questions.question import Case, topic_id
from tests.compat.questions.side import CLOSED, Outcome
from tests.compat.questions.verdict import Judge

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NOW_MS = 1_790_000_000_000
CASE = Case(ApiKey.METADATA, 12, "one", ())


def known(port: int, actual: bytes = b"i" * 16) -> Known:
    return Known({actual: topic_id("t")}, port, f"/data/{port}", NOW_MS)


def answer(port: int = 9092, **fields: int) -> MetadataResponse:
    partitions = [MetadataResponsePartition(partition_index=index, leader_id=1) for index in (0, 1)]
    topic = MetadataResponseTopic(name="t", topic_id=b"i" * 16, partitions=partitions)
    for name, value in fields.items():
        setattr(partitions[1], name, value)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)], cluster_id=str(port), topics=[topic]
    )


def judged(kafka: Outcome, ottla: Outcome, *excuses: Excuse) -> list[Difference]:
    return Judge(excuses).differences(CASE, 0, kafka, ottla)[0]


def test_what_only_one_broker_knows_does_not_matter() -> None:
    one, other = answer(1111), answer(2222)
    other.topics[0].topic_id = b"j" * 16
    other.topics[0].partitions.reverse()
    assert not [*differences(plain(one, 12, known(1111)), plain(other, 12, known(2222, b"j" * 16)))]


@pytest.mark.parametrize(
    ("field", "value"), [("leader_id", 2), ("error_code", 5), ("leader_epoch", 0), ("partition_index", 7)]
)
def test_a_doctored_answer_is_reported(field: str, value: int) -> None:
    good = Outcome("answered", plain(answer(), 12, known(9092)))
    bad = Outcome("answered", plain(answer(**{field: value}), 12, known(9092)))
    assert not judged(good, good)
    assert judged(good, bad)
    assert judged(bad, good)


def test_a_missing_part_and_a_closed_connection_are_reported() -> None:
    shorter = answer()
    shorter.topics[0].partitions.pop()
    good, bad = (Outcome("answered", plain(one, 12, known(9092))) for one in (answer(), shorter))
    assert [str(found) for found in judged(good, bad)]
    assert judged(good, CLOSED) == [Difference("outcome", "outcome", "answered", "closed")]


def test_an_unknown_id_is_not_taken_for_a_known_one() -> None:
    other = answer()
    other.topics[0].topic_id = b"?" * 16
    assert [*differences(plain(answer(), 12, known(9092)), plain(other, 12, known(9092)))]


def test_an_excuse_covers_what_it_says() -> None:
    excuse = Excuse("Metadata", "9 to 12", "o*", "topics[t*].partitions[1].leader_id", "1", "*", 1, "")
    good, bad = (Outcome("answered", plain(one, 12, known(9092))) for one in (answer(), answer(leader_id=2)))
    assert not judged(good, bad, excuse)
    assert judged(bad, good, excuse)
    for other in (
        Excuse("Fetch", "*", "*", "*", "*", "*", 1, ""),
        Excuse("Metadata", "0 to 11", "*", "*", "*", "*", 1, ""),
        Excuse("Metadata", "*", "two", "*", "*", "*", 1, ""),
        Excuse("Metadata", "*", "one, request 2", "*", "*", "*", 1, ""),
        Excuse("Metadata", "*", "*", "topics.partitions.error_code", "*", "*", 1, ""),
    ):
        assert judged(good, bad, other)


def test_the_page_of_excuses_is_read_whole() -> None:
    excuses = read_excuses()
    assert len(excuses) > 5
    assert all(excuse.reason for excuse in excuses)
    assert read_excuses("# no such table") == []
    assert excused_in_all() > 0
    assert excused_in_all("") == 0


def test_a_seed_gives_the_same_questions_whatever_else_is_asked() -> None:
    def titles(*keys: ApiKey) -> list[str]:
        return [case.title for case in all_cases(3, SHORT, keys) if case.api is ApiKey.LIST_OFFSETS]

    alone = titles(ApiKey.LIST_OFFSETS)
    assert alone == titles(ApiKey.LIST_OFFSETS)
    assert set(alone) <= set(titles(ApiKey.LIST_OFFSETS, ApiKey.PRODUCE, ApiKey.METADATA))


def test_an_api_without_knowledge_is_asked_about_all_the_same() -> None:
    for form in (SHORT, LONG):
        cases = all_cases(3, form, [ApiKey.LIST_GROUPS])
        assert {case.version for case in cases} == set(range(6))
