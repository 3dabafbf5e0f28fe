"""Members join, leave, hang, die and come back while topics grow and the coordinator moves, in any order.

At all times no partition is used by two members; once things are quiet, none is without an owner; epochs never go back;
a coordinator that loads the records knows what the one before it knew.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.property.groups.next_generation_clients import Consumer, Partition
from tests.unit.groups.consumer.rig import GROUP, Rig

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.settings import GroupSettings

NAMES = ["a", "b", "c"]
SUBSCRIPTIONS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
CHOICE = st.integers(0, 1 << 16)


class ConsumerGroupRun(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.topics = {"a": 3, "b": 2}
        self.rig.set_topics(**self.topics)
        self.running: list[Consumer] = []
        self.hanging: list[Consumer] = []
        self.born = 0
        self.epochs = (0, 0)

    @initialize(interval_ms=st.sampled_from([0, 1_000]), assignor=st.sampled_from(["uniform", "range"]))
    def begin(self, interval_ms: int, assignor: str) -> None:
        self.rig.settings = GroupSettings(
            group_consumer_assignment_interval_ms=interval_ms, group_consumer_assignors=(assignor,)
        )

    def _group(self) -> ConsumerGroup | None:
        group = self.rig.groups.get(GROUP)
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    def _pick(self, choice: int) -> Consumer:
        return self.running[choice % len(self.running)]

    # Members

    @precondition(lambda self: len(self.running) < 5)
    @rule(names=SUBSCRIPTIONS, kind=st.sampled_from(["dynamic", "static", "regex"]))
    def start(self, names: list[str], kind: str) -> None:
        self.born += 1
        instance_id = f"i{self.born}" if kind == "static" else None
        consumer = Consumer(self.rig, f"m{self.born}", names, instance_id)
        if kind == "regex":
            consumer.names, consumer.regex = [], "|".join(names)
        self.running.append(consumer)
        consumer.beat()

    @precondition(lambda self: self.running)
    @rule(choice=CHOICE, is_answer_lost=st.booleans())
    def beat(self, choice: int, is_answer_lost: bool) -> None:
        self._pick(choice).beat(is_answer_lost=is_answer_lost)

    @precondition(lambda self: self.running)
    @rule(choice=CHOICE)
    def give_back_and_beat(self, choice: int) -> None:
        consumer = self._pick(choice)
        consumer.give_back()
        consumer.beat()

    @precondition(lambda self: self.running)
    @rule(choice=CHOICE, names=SUBSCRIPTIONS)
    def subscribe_anew(self, choice: int, names: list[str]) -> None:
        consumer = self._pick(choice)
        if consumer.regex is None:
            consumer.names = names
        else:
            consumer.regex = "|".join(names)
        consumer.is_unsure = True
        consumer.beat()

    @precondition(lambda self: self.running)
    @rule(choice=CHOICE)
    def leave(self, choice: int) -> None:
        consumer = self._pick(choice)
        self.running.remove(consumer)
        consumer.leave()

    @precondition(lambda self: any(consumer.instance_id for consumer in self.running))
    @rule(choice=CHOICE)
    def restart_static(self, choice: int) -> None:
        static = [consumer for consumer in self.running if consumer.instance_id]
        consumer = static[choice % len(static)]
        consumer.leave(-2)
        self.born += 1
        consumer.member_id = f"m{self.born}"
        consumer.beat()

    @precondition(lambda self: self.running)
    @rule(choice=CHOICE)
    def hang(self, choice: int) -> None:
        consumer = self._pick(choice)
        self.running.remove(consumer)
        self.hanging.append(consumer)

    @precondition(lambda self: self.hanging)
    @rule(choice=CHOICE)
    def come_back(self, choice: int) -> None:
        consumer = self.hanging.pop(choice % len(self.hanging))
        self.running.append(consumer)
        consumer.beat()

    # The world

    @rule(milliseconds=st.sampled_from([1, 500, 5_000, 20_000, 50_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.rig.pass_time(milliseconds)

    @rule(name=st.sampled_from(NAMES))
    def grow(self, name: str) -> None:
        if self.topics.get(name, 0) < 6:
            self.topics[name] = self.topics.get(name, 0) + 1
            self.rig.set_topics(**self.topics)

    @rule()
    def move_coordinator(self) -> None:
        before = self._group()
        self.rig.reload()
        after = self._group()
        if before is None or after is None:
            assert before is after
            return
        for name in ("group_epoch", "metadata_hash", "assignment_epoch", "members", "targets", "resolved"):
            assert getattr(before, name) == getattr(after, name), name
        assert before._owners == after._owners
        assert (before.by_name, before.by_regex, before.regexes) == (after.by_name, after.by_regex, after.regexes)

    @rule(choice=CHOICE)
    def fail_to_write(self, choice: int) -> None:
        self.rig.refuses = True
        if self.running:
            self._pick(choice).beat()
        self.rig.refuses = False

    @rule()
    def settle(self) -> None:
        """Nothing new happens; those who hang are given up."""
        for _ in range(30):
            self.rig.pass_time(2_000)
            for consumer in self.running:
                consumer.give_back()
                consumer.beat()
        self.hanging.clear()
        owned: list[Partition] = [partition for consumer in self.running for partition in consumer.uses]
        wanted = {
            (self.rig.image.topics[name].topic_id, index)
            for consumer in self.running
            for name in ([*consumer.names] if consumer.regex is None else consumer.regex.split("|"))
            if name in self.topics
            for index in range(self.topics[name])
        }
        assert len(owned) == len(set(owned))
        assert set(owned) == wanted
        group = self._group()
        if group is not None:
            assert group.state_name == ("Stable" if self.running else "Empty")
        written = len(self.rig.log)
        for consumer in self.running:
            consumer.beat()
        assert len(self.rig.log) == written, "a quiet group writes nothing"

    # What must stay true

    @invariant()
    def no_partition_is_used_by_two_members(self) -> None:
        seen: dict[Partition, str] = {}
        for consumer in [*self.running, *self.hanging]:
            if consumer.is_member:
                for partition in consumer.uses:
                    assert partition not in seen, f"{seen[partition]} and {consumer.member_id} use {partition}"
                    seen[partition] = consumer.member_id

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self._group()
        if group is not None:
            now = (group.group_epoch, group.assignment_epoch)
            assert now[0] >= self.epochs[0]
            assert now[1] >= self.epochs[1]
            assert now[0] >= now[1]
            self.epochs = now


ConsumerGroupRun.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None, derandomize=True)
TestConsumerGroup = ConsumerGroupRun.TestCase
