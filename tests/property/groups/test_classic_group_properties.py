"""Members come, leave, hang, die and come back in any order, the coordinator too: what must hold whatever happens."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.property.examples import examples
from tests.property.groups.consumers import PARTITIONS, Consumer, History
from tests.unit.groups.classic.desk import GROUP, Desk

from ottla.groups.classic import ClassicGroup
from ottla.protocol.errors import ErrorCode, KafkaError

COUNT = 5
QUIET_ROUNDS = 160
ROUND_MS = 500
WHO = st.integers(0, COUNT - 1)


class Group(RuleBasedStateMachine):
    @initialize(
        kinds=st.lists(st.tuples(st.booleans(), st.sampled_from([2, 3, 5, 8, 9])), min_size=COUNT, max_size=COUNT),
        delay_ms=st.sampled_from([0, 1_000, 3_000]),
        limit=st.sampled_from([3, 100]),
    )
    def begin(self, kinds: list[tuple[bool, int]], delay_ms: int, limit: int) -> None:
        self.desk = Desk(group_initial_rebalance_delay_ms=delay_ms, group_max_size=limit)
        self.limit = limit
        self.history = History()
        self.consumers = [
            Consumer(self.desk, self.history, f"c{number}", is_static=is_static and version >= 5, version=version)
            for number, (is_static, version) in enumerate(kinds)
        ]

    # Members

    @rule(who=WHO)
    def start(self, who: int) -> None:
        if not self.consumers[who].is_up:
            self.consumers[who].start()

    @rule(who=st.lists(WHO, min_size=1, max_size=12))
    def act(self, who: list[int]) -> None:
        for number in who:
            self.consumers[number].step()

    @rule(rounds=st.integers(1, 20))
    def live(self, rounds: int) -> None:
        """Time passes as it does for clients that do their work."""
        for _ in range(rounds):
            for consumer in self.consumers:
                consumer.step()
            self.desk.advance(ROUND_MS)

    @rule()
    def start_all(self) -> None:
        for consumer in self.consumers:
            if not consumer.is_up:
                consumer.start()

    @rule(who=WHO)
    def hang(self, who: int) -> None:
        self.consumers[who].is_hung = True

    @rule(who=WHO)
    def wake(self, who: int) -> None:
        self.consumers[who].is_hung = False

    @rule(who=WHO)
    def die(self, who: int) -> None:
        self.consumers[who].die()

    @rule(who=WHO)
    def leave(self, who: int) -> None:
        self.consumers[who].leave()

    # Time and the coordinator

    @rule()
    def settle(self) -> None:
        """Everybody who can has a part, so that there is something to lose."""
        self.live(30)

    @rule(milliseconds=st.sampled_from([1, 500, 3_000, 6_000, 8_000, 20_000]))
    def wait(self, milliseconds: int) -> None:
        self.desk.advance(milliseconds)

    @rule()
    def crash(self) -> None:
        self.desk.crash()

    @rule()
    def move(self) -> None:
        self.desk.unload()

    @rule(is_full=st.booleans())
    def disk(self, is_full: bool) -> None:
        self.desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "full") if is_full else None

    # What must hold

    @invariant()
    def the_books_are_right(self) -> None:
        group = self.desk.groups.get(GROUP)
        if not isinstance(group, ClassicGroup):
            return
        members = group.members
        known = members.by_id.values()
        assert members.joining_count == sum(member.is_joining for member in known)
        assert (members.leader in members.by_id) if members.by_id else members.leader is None
        assert members.by_instance == {m.instance_id: m.member_id for m in known if m.instance_id is not None}
        assert not members.pending.keys() & members.by_id.keys()
        assert members.unsynced.keys() <= members.by_id.keys()
        if group.is_empty:
            assert not members.by_id
        if members.by_id:
            assert members.elected_protocol()
        for member in known:
            if not member.is_heard_of:
                key = f"classic session {len(GROUP)} {GROUP} {member.member_id}"
                assert self.desk.timers.is_scheduled(key), f"{member.member_id} would stay for ever"

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            self.desk.failure = None
            self.come_to_rest()

    def come_to_rest(self) -> None:
        """Once nobody dies any more, everybody who is up has a part, and together they have all."""
        up = [consumer for consumer in self.consumers if consumer.is_up]
        for consumer in up[self.limit :]:
            consumer.die()
        up = up[: self.limit]
        for consumer in up:
            consumer.is_hung = False
        for _ in range(QUIET_ROUNDS):
            for consumer in up:
                consumer.step()
            self.desk.advance(ROUND_MS)
        generations = {consumer.generation for consumer in up}
        if up:
            assert self.desk.state == "Stable"
            assert generations == {self.desk.group().generation}
            owned = [partition for consumer in up for partition in consumer.part or b""]
            assert sorted(owned) == sorted(PARTITIONS)
            assert len(self.desk.group().members) == len(up)
        elif GROUP in self.desk.groups:
            assert self.desk.state == "Empty"
        assert self.desk.nobody_waits


TestGroup = Group.TestCase
TestGroup.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
