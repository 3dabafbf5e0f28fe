"""A fetch session against a model of the broker's side: it always fetches exactly what the client wants."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.property.examples import examples

from ottla.client.consumer.sessions import Ask, FetchSession, Wanted
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode

PARTITIONS = [TopicPartition("t", number) for number in range(4)]
WANTED = st.dictionaries(
    st.sampled_from(PARTITIONS),
    st.builds(Wanted, st.sampled_from([b"1" * 16, b"2" * 16]), st.integers(0, 3), st.just(1), st.just(10)),
    min_size=1,
)


class Sessions(RuleBasedStateMachine):
    """The broker keeps its cached sessions by id; it may refuse, forget or not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.client = FetchSession()
        self.cached: dict[int, tuple[int, dict[tuple[TopicPartition, bytes], Wanted]]] = {}
        self.ids = 0
        self.fetched: set[tuple[TopicPartition, Wanted]] | None = None
        self.wanted: dict[TopicPartition, Wanted] = {}

    def serve(self, ask: Ask, keep: bool) -> tuple[int, int]:
        """The error code and session id of the broker's answer."""
        asked = {(partition, want.topic_id): want for partition, want in ask.partitions.items()}
        self.fetched = None
        if ask.epoch == 0:
            self.cached.pop(ask.session_id, None)
            self.fetched = {(partition, want) for (partition, _), want in asked.items()}
            if not keep:
                return 0, 0
            self.ids += 1
            self.cached[self.ids] = (1, asked)
            return 0, self.ids
        if ask.session_id not in self.cached:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0
        expected, known = self.cached[ask.session_id]
        if expected != ask.epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0
        for partition, topic_id in ask.forgotten.items():
            known.pop((partition, topic_id), None)
        known.update(asked)
        self.cached[ask.session_id] = (expected + 1, known)
        self.fetched = {(partition, want) for (partition, _), want in known.items()}
        return 0, ask.session_id

    @rule(wanted=WANTED, keep=st.booleans(), answer_comes=st.booleans())
    def fetch(self, wanted: dict[TopicPartition, Wanted], keep: bool, answer_comes: bool) -> None:
        self.wanted = wanted
        code, session_id = self.serve(self.client.ask(wanted), keep)
        if answer_comes:
            assert self.client.answered(code, session_id) == (code == 0)
        else:
            self.client.failed()

    @rule()
    def broker_forgets(self) -> None:
        self.cached.clear()

    @rule()
    def request_is_lost_on_its_way(self) -> None:
        self.client.ask(self.wanted)
        self.client.failed()

    @invariant()
    def what_is_fetched_is_what_is_wanted(self) -> None:
        if self.fetched is not None:
            assert self.fetched == set(self.wanted.items())


TestSessions = Sessions.TestCase
TestSessions.settings = settings(deadline=None, max_examples=examples(40), stateful_step_count=20)
