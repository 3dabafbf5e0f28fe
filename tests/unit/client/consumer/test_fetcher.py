"""Which fetches are sent, and what becomes of answers."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from tests.unit.client.consumer.stored import batch

from ottla.client.cluster import Cluster, Node, PartitionInfo, TopicInfo
from ottla.client.consumer.fetcher import Fetcher, FetchPlan, Outcome
from ottla.client.consumer.positions import Assignment, PartitionState, Phase, Position
from ottla.client.consumer.prefetch import Prefetch
from ottla.client.consumer.settings import FetchSettings
from ottla.client.errors import CorruptBatch, NotAuthorized
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, LeaderIdAndEpoch, PartitionData

TOPIC_ID = b"t" * 16


def cluster(leaders: list[int], topic_id: bytes = TOPIC_ID) -> Cluster:
    partitions = tuple(PartitionInfo(number, leader, 5, (1, 2), (1, 2)) for number, leader in enumerate(leaders))
    return Cluster(
        nodes=MappingProxyType({node_id: Node(node_id, "host", 1) for node_id in (1, 2, 3)}),
        topics=MappingProxyType({"orders": TopicInfo("orders", topic_id, partitions)}),
        names_by_id=MappingProxyType({topic_id: "orders"}),
    )


class Desk:
    def __init__(self, leaders: list[int], **settings: object) -> None:
        self.settings = FetchSettings(**settings)  # type: ignore[arg-type]  # each test names what it needs
        self.assignment = Assignment()
        self.room = 0
        self.prefetch = Prefetch(self.settings.prefetch_bytes, lambda: None)
        self.fetcher = Fetcher(self.settings, self.assignment, self.prefetch)
        self.cluster = cluster(leaders)
        self.states: list[PartitionState] = []
        for number in range(len(leaders)):
            state = self.assignment.add(TopicPartition("orders", number))
            state.stand_at(Position(0))
            self.states.append(state)

    def plans(self, now: float = 0.0) -> list[FetchPlan]:
        return self.fetcher.plans(self.cluster, now)

    def answer(
        self, plan: FetchPlan, *data: PartitionData, now: float = 0.0, error: int = 0, session: int = 9
    ) -> Outcome:
        topics = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(data))] if data else []
        response = FetchResponse(error_code=error, session_id=session, responses=topics)
        return self.fetcher.answered(plan, response, now)


def records(number: int, *values: bytes, base_offset: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=number,
        high_watermark=100,
        last_stable_offset=90,
        log_start_offset=2,
        records=memoryview(batch(values, base_offset)) if values else None,
    )


def refused(number: int, code: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=number, error_code=code, records=None)


def asked(plan: FetchPlan) -> dict[int, int]:
    return {one.partition: one.fetch_offset for topic in plan.request.topics for one in topic.partitions}


def test_partitions_are_fetched_from_their_leaders() -> None:
    desk = Desk([1, 2, 1])
    first, second = desk.plans()
    assert (first.node_id, asked(first)) == (1, {0: 0, 2: 0})
    assert (second.node_id, asked(second)) == (2, {1: 0})
    assert first.request.topics[0].topic_id == TOPIC_ID
    assert first.request.topics[0].partitions[0].current_leader_epoch == 5


def test_one_fetch_at_a_time_is_on_its_way_to_a_broker() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    assert desk.plans() == []
    assert desk.answer(plan, records(0, b"a", b"b")).has_records
    (following,) = desk.plans()
    assert asked(following) == {0: 2}
    assert (following.request.session_id, following.request.session_epoch) == (9, 1)


def test_a_fetch_goes_on_behind_what_is_buffered_not_behind_what_was_taken() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    desk.answer(plan, records(0, b"a", b"b"))
    desk.prefetch.take(1)
    (following,) = desk.plans()
    assert asked(following) == {0: 2}
    assert desk.states[0].next_offset == 1


def test_what_the_broker_says_about_the_log_is_kept() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    desk.answer(plan, records(0))
    state = desk.states[0]
    assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (100, 90, 2)


def test_an_answer_to_a_question_from_before_a_seek_is_ignored() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    desk.states[0].stand_at(Position(7))
    assert not desk.answer(plan, records(0, b"a")).has_records
    (following,) = desk.plans()
    assert asked(following) == {0: 7}


def test_an_answer_for_a_partition_that_is_gone_is_ignored() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    desk.assignment.remove(TopicPartition("orders", 0))
    desk.assignment.add(TopicPartition("orders", 0)).stand_at(Position(0))
    assert not desk.answer(plan, records(0, b"a")).has_records


def test_paused_partitions_are_not_fetched() -> None:
    desk = Desk([1, 1])
    desk.states[0].is_paused = True
    (plan,) = desk.plans()
    assert asked(plan) == {1: 0}


def test_a_partition_that_brought_records_comes_after_the_others() -> None:
    desk = Desk([1, 1, 1])
    (plan,) = desk.plans()
    desk.answer(plan, records(0, b"a"), records(1), records(2))
    (following,) = desk.plans()
    assert list(following.partitions) == [TopicPartition("orders", number) for number in (1, 2, 0)]


def test_no_fetch_is_sent_without_room_and_one_is_when_there_is_some() -> None:
    size_bytes = len(batch([b"x" * 1000]))
    desk = Desk([1], prefetch_bytes=size_bytes + 100, max_partition_fetch_bytes=500)
    (plan,) = desk.plans()
    assert plan.request.max_bytes == size_bytes + 100
    desk.answer(plan, records(0, b"x" * 1000))
    assert desk.plans() == []
    desk.prefetch.take(1)
    desk.prefetch.take(1)
    assert len(desk.plans()) == 1


def test_a_fetch_that_waits_for_records_leaves_room_for_those_of_all_other_brokers() -> None:
    desk = Desk([1, 2, 3], prefetch_bytes=3000, max_partition_fetch_bytes=2000)
    plans = desk.plans()
    assert [(plan.node_id, plan.request.max_bytes) for plan in plans] == [(1, 1000), (2, 1000), (3, 1000)]


def test_room_is_kept_for_a_broker_that_cannot_be_asked_yet() -> None:
    desk = Desk([1, 2], prefetch_bytes=3000)
    desk.states[1].retry_at = 1.0
    assert [(plan.node_id, plan.request.max_bytes) for plan in desk.plans()] == [(1, 1500)]
    assert [(plan.node_id, plan.request.max_bytes) for plan in desk.plans(1.0)] == [(2, 1500)]


def test_a_broker_that_waited_for_room_is_asked_before_one_that_brought_records() -> None:
    size_bytes = len(batch([b"x" * 1000]))
    desk = Desk([1, 2], prefetch_bytes=2 * size_bytes, max_partition_fetch_bytes=size_bytes)
    first, second = desk.plans()
    desk.answer(first, records(0, b"x" * 1000))
    desk.answer(second)
    (waited,) = desk.plans()
    assert waited.node_id == 2
    desk.answer(waited, records(1, b"x" * 1000))
    assert desk.plans() == []
    assert len(desk.prefetch.take(2)) == 2
    desk.prefetch.take(1)
    assert [plan.node_id for plan in desk.plans()] == [1, 2]


def test_a_batch_larger_than_the_limit_still_comes() -> None:
    desk = Desk([1], prefetch_bytes=10)
    (plan,) = desk.plans()
    assert plan.request.max_bytes == 10
    assert desk.answer(plan, records(0, b"x" * 1000)).has_records


def test_a_partition_that_has_its_share_waits_and_its_neighbours_are_asked_again_soon() -> None:
    desk = Desk([1, 1], prefetch_bytes=2500, max_partition_fetch_bytes=500)
    (plan,) = desk.plans()
    assert plan.request.max_wait_ms == 500
    desk.answer(plan, records(0, b"x" * 1500))
    (following,) = desk.plans()
    assert list(following.partitions) == [TopicPartition("orders", 1)]
    assert [topic.partitions for topic in following.request.forgotten_topics_data] == [[0]]
    waits = [following.request.max_wait_ms]
    for _ in range(2):
        desk.answer(following)
        (following,) = desk.plans()
        waits.append(following.request.max_wait_ms)
    assert waits == [20, 40, 80]
    desk.answer(following)
    desk.prefetch.take(1)
    desk.prefetch.take(1)
    assert [plan.request.max_wait_ms for plan in desk.plans()] == [500]


def test_a_replica_that_is_nearer_is_used_until_its_time_is_over() -> None:
    desk = Desk([1], client_rack="a", metadata_max_age_seconds=10.0)
    (plan,) = desk.plans()
    assert plan.request.rack_id == "a"
    data = records(0)
    data.preferred_read_replica = 2
    desk.answer(plan, data)
    (nearer,) = desk.plans(1.0)
    assert nearer.node_id == 2
    desk.answer(nearer, records(0), now=1.0)
    (later,) = desk.plans(11.0)
    assert later.node_id == 1


def test_a_replica_that_lacks_an_offset_gives_way_to_the_leader() -> None:
    desk = Desk([1])
    desk.states[0].preferred_replica, desk.states[0].preferred_until = 2, 100.0
    (plan,) = desk.plans()
    assert plan.node_id == 2
    assert desk.answer(plan, refused(0, ErrorCode.OFFSET_OUT_OF_RANGE)) == Outcome()
    (following,) = desk.plans()
    assert following.node_id == 1
    assert desk.answer(following, refused(0, ErrorCode.OFFSET_OUT_OF_RANGE)).out_of_range == (desk.states[0],)


@pytest.mark.parametrize(
    ("code", "is_stale"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.FENCED_LEADER_EPOCH, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, True),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False),
    ],
)
def test_what_will_pass_is_tried_again_after_a_while(code: ErrorCode, is_stale: bool) -> None:
    desk = Desk([1], retry_backoff_seconds=0.5)
    (plan,) = desk.plans()
    assert desk.answer(plan, refused(0, code), now=1.0) == Outcome(is_metadata_stale=is_stale)
    assert desk.plans(1.4) == []
    assert len(desk.plans(1.6)) == 1


def test_the_leader_that_a_broker_names_is_passed_on() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    data = refused(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    data.current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=6)
    outcome = desk.answer(plan, data)
    assert [(place.partition, leader.leader_id) for place, leader in outcome.leaders] == [(0, 2)]


def test_what_will_not_pass_is_told_once_and_not_fetched_until_a_seek() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    (error,) = desk.answer(plan, refused(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)).errors
    assert isinstance(error, NotAuthorized)
    assert "orders-0" in str(error)
    assert desk.plans() == []
    desk.states[0].stand_at(Position(0))
    assert len(desk.plans()) == 1


def test_an_error_of_the_session_sends_everything_again() -> None:
    desk = Desk([1, 1])
    (plan,) = desk.plans()
    desk.answer(plan)
    (second,) = desk.plans()
    assert asked(second) == {}
    desk.answer(second, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session=0)
    (third,) = desk.plans()
    assert (third.request.session_id, asked(third)) == (0, {0: 0, 1: 0})


def test_no_answer_lets_the_partitions_wait_and_gives_up_the_replica() -> None:
    desk = Desk([1])
    desk.states[0].preferred_replica, desk.states[0].preferred_until = 2, 100.0
    (plan,) = desk.plans()
    desk.fetcher.failed(plan, 3.0)
    assert desk.plans(2.0) == []
    (following,) = desk.plans(3.0)
    assert following.node_id == 1


def test_topics_without_an_id_are_asked_for_by_name() -> None:
    desk = Desk([1])
    desk.cluster = cluster([1], bytes(16))
    (plan,) = desk.plans()
    assert (plan.max_version, plan.request.topics[0].topic) == (12, "orders")
    topic = FetchableTopicResponse(topic="orders", partitions=[records(0, b"a")])
    assert desk.fetcher.answered(plan, FetchResponse(responses=[topic]), 0.0).has_records


def test_a_piece_of_a_batch_is_passed_over_where_a_whole_one_can_come_later() -> None:
    desk = Desk([1, 1])
    (plan,) = desk.plans()
    piece = records(1)
    piece.records = memoryview(batch([b"x" * 1000])[:500])
    assert desk.answer(plan, records(0, b"a"), piece).has_records
    (following,) = desk.plans()
    assert next(iter(following.partitions)) == TopicPartition("orders", 1)
    assert desk.states[1].fetch_offset == 0


def test_a_broker_that_never_sends_a_whole_batch_is_an_error() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    piece = records(0)
    piece.records = memoryview(batch([b"x" * 1000])[:500])
    desk.answer(plan, piece)
    with pytest.raises(CorruptBatch, match=r"raise max\.partition\.fetch\.bytes"):
        desk.prefetch.take(1)


def test_damage_is_handed_out_in_its_place_and_stops_the_partition() -> None:
    desk = Desk([1])
    (plan,) = desk.plans()
    data = records(0)
    data.records = memoryview(batch([b"a"]) + bytes(100))
    assert desk.answer(plan, data).has_records
    assert desk.states[0].phase is Phase.FAILED
    assert [record.value for record in desk.prefetch.take(10)] == [b"a"]
    assert desk.plans() == []
