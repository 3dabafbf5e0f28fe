"""Offsets of groups against a plain model: whatever happens, and whenever the broker is started again.

The model has one line for each rule: a later record counts, a tombstone takes what is committed and what is pending, a
transaction brings what is newer than what is there.
"""

import asyncio
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.examples import examples
from tests.unit.groups.offset_rig import GroupRig, offset
from tests.unit.replication.rig import turns

from ottla.protocol.errors import ErrorCode, KafkaError

GROUPS = ("g", "h")
TOPICS = ("a", "b")
PARTITIONS = (0, 1)
PRODUCERS = (1, 2)

Place = tuple[str, str, int]

groups, topics, partitions = st.sampled_from(GROUPS), st.sampled_from(TOPICS), st.sampled_from(PARTITIONS)
places = st.tuples(groups, topics, partitions)
numbers = st.integers(0, 100)


class Commit(NamedTuple):
    place: Place
    number: int
    producer_id: int | None


class End(NamedTuple):
    producer_id: int
    is_commit: bool


class Delete(NamedTuple):
    place: Place


class DeleteGroup(NamedTuple):
    group_id: str


class DeleteTopic(NamedTuple):
    topic: str


class Restart(NamedTuple):
    pass


Step = Commit | End | Delete | DeleteGroup | DeleteTopic | Restart

steps = st.one_of(
    st.builds(Commit, places, numbers, st.sampled_from((None, None, *PRODUCERS))),
    st.builds(End, st.sampled_from(PRODUCERS), st.booleans()),
    st.builds(Delete, places),
    st.builds(DeleteGroup, groups),
    st.builds(DeleteTopic, topics),
    st.builds(Restart),
)


class Model:
    def __init__(self) -> None:
        self.committed: dict[Place, tuple[int, int]] = {}
        self.pending: dict[int, dict[Place, tuple[int, int]]] = {}
        self.groups: set[str] = set()
        self._clock = 0

    def commit(self, step: Commit) -> None:
        self._clock += 1
        into = self.committed if step.producer_id is None else self.pending.setdefault(step.producer_id, {})
        into[step.place] = (self._clock, step.number)
        self.groups.add(step.place[0])

    def end(self, step: End) -> None:
        for place, value in self.pending.pop(step.producer_id, {}).items():
            if step.is_commit:
                self.committed[place] = max(value, self.committed.get(place, value))

    def remove(self, is_gone: "set[Place]") -> None:
        for offsets in (self.committed, *self.pending.values()):
            for place in is_gone & offsets.keys():
                del offsets[place]

    def is_pending(self, place: Place) -> bool:
        return any(place in offsets for offsets in self.pending.values())


ALL_PLACES: list[Place] = [(group, topic, index) for group in GROUPS for topic in TOPICS for index in PARTITIONS]


async def take(step: Step, rig: GroupRig, model: Model) -> None:
    match step:
        case Commit((group_id, topic, index), number, producer_id):
            wanted = offset(topic, index, number)
            if producer_id is None:
                rig.commit(group_id, wanted)
            else:
                rig.commit_in_transaction(group_id, producer_id, wanted)
            model.commit(step)
        case End(producer_id, is_commit):
            rig.end(producer_id, is_commit=is_commit)
            model.end(step)
        case Delete((group_id, topic, index)):
            if group_id in model.groups:
                rig.delete(group_id, (topic, index))
                model.remove({step.place})
        case DeleteGroup(group_id):
            if group_id in model.groups:
                rig.delete_group(group_id)
            else:
                with pytest.raises(KafkaError):
                    rig.delete_group(group_id)
            model.remove({place for place in ALL_PLACES if place[0] == group_id})
            model.groups.discard(group_id)
        case DeleteTopic(topic):
            rig.machine.topics_changed({topic: frozenset()})
            await turns(5)
            model.remove({place for place in ALL_PLACES if place[1] == topic})
        case Restart():
            await rig.restart()


def check(rig: GroupRig, model: Model) -> None:
    assert rig.group_ids() == sorted(model.groups)
    for place in ALL_PLACES:
        expected = model.committed[place][1] if place in model.committed else -1
        assert rig.fetch(*place).offset == expected
        stable = rig.fetch(*place, is_stable=True)
        assert (stable.error is ErrorCode.UNSTABLE_OFFSET_COMMIT) == model.is_pending(place)
    assert rig.machine.offsets.table.size == len(model.committed)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(steps, max_size=30))
def test_offsets_are_what_the_model_says_before_and_after_every_restart(plan: list[Step]) -> None:
    async def scenario() -> None:
        rig, model = GroupRig(), Model()
        await rig.start()
        for step in [*plan, Restart()]:
            await take(step, rig, model)
            check(rig, model)

    asyncio.run(scenario())
