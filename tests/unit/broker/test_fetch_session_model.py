"""Whatever happens, a client that follows its session knows the state of every partition in it."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.broker.doubles import Dice

from ottla.broker.fetch_sessions import FetchContext, FetchSessions
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, PartitionData
from ottla.testing import ManualClock

VERSION = 12
PARTITIONS = range(4)
some_partitions = st.sets(st.sampled_from(PARTITIONS))

State = tuple[int, int, int]


class SessionMachine(RuleBasedStateMachine):
    """`truth` is what the broker would answer for a partition, `known` what the client was told of it last."""

    @initialize()
    def begin(self) -> None:
        self.sessions = FetchSessions(3, ManualClock(), Dice())
        self.session_id = 0
        self.epoch = 0
        self.fetching: set[int] = set()
        self.known: dict[int, State] = {}
        self.truth: dict[int, State] = dict.fromkeys(PARTITIONS, (0, 0, 0))

    @rule(partition=st.sampled_from(PARTITIONS), count=st.integers(1, 3))
    def grow(self, partition: int, count: int) -> None:
        end, start, error = self.truth[partition]
        self.truth[partition] = (end + count, start, error)

    @rule(partition=st.sampled_from(PARTITIONS))
    def cut_the_beginning(self, partition: int) -> None:
        end, start, error = self.truth[partition]
        self.truth[partition] = (end, min(start + 1, end), error)

    @rule(partition=st.sampled_from(PARTITIONS))
    def fail_or_recover(self, partition: int) -> None:
        end, start, error = self.truth[partition]
        self.truth[partition] = (end, start, 0 if error else ErrorCode.NOT_LEADER_OR_FOLLOWER)

    @rule(wanted=some_partitions)
    def open_a_session(self, wanted: set[int]) -> None:
        self.fetching, self.known = set(wanted), {}
        self._fetch(0, wanted, set())

    @rule(added=some_partitions, forgotten=some_partitions)
    def fetch_incrementally(self, added: set[int], forgotten: set[int]) -> None:
        if not self.session_id:
            return
        self.fetching = (self.fetching | added) - forgotten
        for partition in forgotten:
            self.known.pop(partition, None)
        self._fetch(self.epoch, added, forgotten)

    def _fetch(self, epoch: int, added: set[int], forgotten: set[int]) -> None:
        wanted = [FetchPartition(partition=partition) for partition in sorted(added)]
        request = FetchRequest(
            session_id=self.session_id,
            session_epoch=epoch,
            topics=[FetchTopic(topic="t", partitions=wanted)],
            forgotten_topics_data=[ForgottenTopic(topic="t", partitions=sorted(forgotten))],
        )
        context = self.sessions.context(request, VERSION)
        assert {target.request.partition for target in context.targets} == self.fetching
        self._listen(context)
        self.session_id, self.epoch = context.session_id, epoch + 1
        if not self.session_id:
            self.fetching, self.known = set(), {}

    def _listen(self, context: FetchContext) -> None:
        answers = []
        for target in context.targets:
            end, start, error = self.truth[target.request.partition]
            answer = PartitionData(
                partition_index=target.request.partition,
                error_code=error,
                high_watermark=-1 if error else end,
                log_start_offset=-1 if error else start,
            )
            answers.append((target, answer))
        for _, answer in context.select(answers):
            self.known[answer.partition_index] = self.truth[answer.partition_index]

    @invariant()
    def the_session_is_the_only_one(self) -> None:
        assert len(self.sessions) == (1 if self.session_id else 0)

    @rule()
    def compare(self) -> None:
        """A fetch that asks for nothing new brings the client up to date."""
        if not self.session_id:
            return
        self._fetch(self.epoch, set(), set())
        for partition in self.fetching:
            *state, error = self.known[partition]
            assert bool(error) == bool(self.truth[partition][2])
            if not error:
                assert tuple(state) == self.truth[partition][:2]


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
