"""Which partitions are fetched from which broker, and what becomes of the answers. Sans-IO: requests out, answers in.

What must stay true:
- One fetch at a time is on its way to a broker, and a partition is in one at a time.
- A fetch begins where the one before ended, whatever was handed out meanwhile; an answer to a question that a seek or
  a rebalance has made void is ignored (`PartitionState.version`).
- A fetch is sent while there is room in the prefetch, and takes at most that room; one batch always comes, however
  large. A partition may use the whole room while it is alone, and an equal share of it otherwise.
- A fetch on its way keeps its room, also where nothing comes for long. So it gets an equal share of the room where
  several brokers are read, and who waited longest is asked first: no broker keeps another one from being asked.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from ottla.client.cluster import NO_LEADER, Cluster
from ottla.client.consumer._twin import Chunk
from ottla.client.consumer.batches import contents_of
from ottla.client.consumer.positions import FETCHING, Assignment, PartitionState, Phase
from ottla.client.consumer.prefetch import Prefetch
from ottla.client.consumer.sessions import FetchSession, Wanted
from ottla.client.consumer.settings import FetchSettings
from ottla.client.errors import CorruptBatch, OttlaError, error_of
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    PartitionData,
)

# Where a partition waits for room, its broker is asked again this soon, even if others have nothing new; and twice as
# late each time that the user has not come back meanwhile.
_SHORT_WAIT_MS = 20
_NO_TOPIC_ID = bytes(16)
_LAST_VERSION_WITH_NAMES = 12

# The leader is another by now, or the broker cannot know yet: ask for metadata and try again.
_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_AGAIN = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})


class FetchPlan(NamedTuple):
    """A request for one broker, and what it stands for: each partition with the version its state had."""

    node_id: int
    request: FetchRequest
    partitions: dict[TopicPartition, tuple[PartitionState, int, Wanted]]
    names: dict[bytes, str]
    max_version: int | None


class Outcome(NamedTuple):
    """What an answer led to: whether records came, whether the metadata is stale, what the user must be told, and the
    leaders that a broker named when it was none."""

    has_records: bool = False
    is_metadata_stale: bool = False
    out_of_range: tuple[PartitionState, ...] = ()
    errors: tuple[OttlaError, ...] = ()
    leaders: tuple[tuple[TopicPartition, LeaderIdAndEpoch], ...] = ()


_NOTHING = Outcome()
_RECORDS = Outcome(has_records=True)


class Fetcher:
    """`decode_key` and `decode_value` make objects of the bytes of a topic; None leaves them bytes."""

    def __init__(
        self,
        settings: FetchSettings,
        assignment: Assignment,
        prefetch: Prefetch,
        decode_key: Callable[[str, bytes], object] | None = None,
        decode_value: Callable[[str, bytes], object] | None = None,
    ) -> None:
        self._settings = settings
        self._assignment = assignment
        self._prefetch = prefetch
        self._decode_key = decode_key
        self._decode_value = decode_value
        self._sessions: dict[int, FetchSession] = {}
        self._in_flight_bytes: dict[int, int] = {}
        self.partition_max_bytes = settings.max_partition_fetch_bytes
        self._short_wait_ms = _SHORT_WAIT_MS
        self._seen_consumed_bytes = 0
        self.fetched_bytes = 0
        self.fetch_count = 0

    @property
    def sessions(self) -> Mapping[int, FetchSession]:
        return self._sessions

    # Requests

    def plans(self, cluster: Cluster, now: float) -> list[FetchPlan]:
        """The fetches that can be sent now."""
        by_node: dict[int, list[PartitionState]] = {}
        crowded: set[int] = set()
        nodes = set(self._in_flight_bytes)
        share_bytes = self._prefetch.limit_bytes // max(len(self._assignment), 1)
        for state in self._assignment.in_turn():
            node_id = self._node_of(state, cluster, now)
            nodes.add(node_id)
            if node_id == NO_LEADER or node_id in self._in_flight_bytes or not _is_due(state, now):
                continue
            buffered_bytes = state.buffered_bytes()
            if buffered_bytes and buffered_bytes >= share_bytes:
                crowded.add(node_id)
                continue
            by_node.setdefault(node_id, []).append(state)
        nodes.discard(NO_LEADER)
        most_bytes = self._prefetch.limit_bytes // max(len(nodes), 1)
        plans = []
        for node_id, states in by_node.items():
            plan = self._plan(node_id, states, cluster, node_id in crowded, most_bytes)
            if plan is not None:
                plans.append(plan)
        if crowded:
            self._prefetch.want_room()
        return plans

    def _node_of(self, state: PartitionState, cluster: Cluster, now: float) -> int:
        """The broker to fetch from: the leader, or a replica that is nearer; NO_LEADER for none."""
        if state.preferred_replica >= 0:
            if now < state.preferred_until and state.preferred_replica in cluster.nodes:
                return state.preferred_replica
            state.preferred_replica = -1
        return cluster.leader_of(state.topic, state.partition)

    def _plan(
        self, node_id: int, states: list[PartitionState], cluster: Cluster, is_crowded: bool, most_bytes: int
    ) -> FetchPlan | None:
        used_bytes = self._prefetch.buffered_bytes + sum(self._in_flight_bytes.values())
        room_bytes = self._prefetch.limit_bytes - used_bytes
        if used_bytes and room_bytes < min(self.partition_max_bytes, self._prefetch.limit_bytes // 2, most_bytes):
            self._prefetch.want_room()
            return None
        max_bytes = min(self._settings.fetch_max_bytes, max(min(room_bytes, most_bytes), 1))
        names: dict[bytes, str] = {}
        max_version = None
        wanted: dict[TopicPartition, Wanted] = {}
        partitions: dict[TopicPartition, tuple[PartitionState, int, Wanted]] = {}
        for state in states:
            info = cluster.topics[state.topic]
            epoch = info.partitions[state.partition].leader_epoch
            want = Wanted(info.topic_id, state.fetch_offset, epoch, min(self.partition_max_bytes, max_bytes))
            wanted[state.topic_partition] = want
            partitions[state.topic_partition] = (state, state.version, want)
            state.is_fetching = True
            if info.topic_id == _NO_TOPIC_ID:
                max_version = _LAST_VERSION_WITH_NAMES
            else:
                names[info.topic_id] = state.topic
        ask = self._sessions.setdefault(node_id, FetchSession()).ask(wanted)
        topics: dict[tuple[str, bytes], FetchTopic] = {}
        for (name, partition), want in ask.partitions.items():
            topic = topics.get((name, want.topic_id))
            if topic is None:
                topic = topics[name, want.topic_id] = FetchTopic(topic=name, topic_id=want.topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=partition,
                    current_leader_epoch=want.leader_epoch,
                    fetch_offset=want.offset,
                    partition_max_bytes=want.max_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=self._crowded_wait_ms() if is_crowded else self._settings.fetch_max_wait_ms,
            min_bytes=self._settings.fetch_min_bytes,
            max_bytes=max_bytes,
            isolation_level=1 if self._settings.is_read_committed else 0,
            session_id=ask.session_id,
            session_epoch=ask.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=_forgotten(ask.forgotten) if ask.forgotten else [],
            rack_id=self._settings.client_rack,
        )
        self._in_flight_bytes[node_id] = max_bytes
        return FetchPlan(node_id, request, partitions, names, max_version)

    def _crowded_wait_ms(self) -> int:
        consumed_bytes = self._prefetch.consumed_bytes
        if consumed_bytes != self._seen_consumed_bytes:
            self._seen_consumed_bytes = consumed_bytes
            self._short_wait_ms = _SHORT_WAIT_MS
        wait_ms = self._short_wait_ms
        self._short_wait_ms = min(2 * wait_ms, max(self._settings.fetch_max_wait_ms, 1))
        return min(wait_ms, self._settings.fetch_max_wait_ms)

    # Answers

    def failed(self, plan: FetchPlan, retry_at: float) -> None:
        """No answer came."""
        self._landed(plan)
        self._sessions[plan.node_id].failed()
        for state, _, _ in plan.partitions.values():
            state.retry_at = retry_at
            if state.preferred_replica == plan.node_id:
                state.preferred_replica = -1

    def answered(self, plan: FetchPlan, response: FetchResponse, now: float) -> Outcome:
        self._landed(plan)
        if not self._sessions[plan.node_id].answered(response.error_code, response.session_id):
            is_stale = response.error_code in (
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                ErrorCode.INCONSISTENT_TOPIC_ID,
                ErrorCode.UNKNOWN_TOPIC_ID,
            )
            retry_at = now + self._settings.retry_backoff_seconds
            if response.error_code and (is_stale or response.error_code not in _SESSION_ERRORS):
                for state, _, _ in plan.partitions.values():
                    state.retry_at = retry_at
            return Outcome(is_metadata_stale=is_stale)
        outcomes = [
            self._partition(plan, topic.topic or plan.names.get(topic.topic_id, ""), data, now)
            for topic in response.responses
            for data in topic.partitions
        ]
        return outcomes[0] if len(outcomes) == 1 else _together(outcomes)

    def _landed(self, plan: FetchPlan) -> None:
        self.fetch_count += 1
        self._in_flight_bytes.pop(plan.node_id, None)
        for state, _, _ in plan.partitions.values():
            state.is_fetching = False

    def _partition(self, plan: FetchPlan, topic: str, data: PartitionData, now: float) -> Outcome:
        # A pair finds what its named twin is the key of, and is made faster.
        asked = plan.partitions.get(cast(TopicPartition, (topic, data.partition_index)))
        if asked is None:
            return _NOTHING
        state, version, want = asked
        partition = state.topic_partition
        if (
            state.version != version
            or state.phase is not FETCHING
            or state.fetch_offset != want.offset
            or self._assignment.get(partition) is not state
        ):
            return _NOTHING
        if data.error_code:
            outcome = self._error(plan, state, ErrorCode(data.error_code), now)
            if outcome.is_metadata_stale and data.current_leader.leader_epoch >= 0:
                return outcome._replace(leaders=((partition, data.current_leader),))
            return outcome
        state.high_watermark = data.high_watermark
        if data.last_stable_offset >= 0:
            state.last_stable_offset = data.last_stable_offset
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != plan.node_id:
            state.preferred_replica = data.preferred_read_replica
            state.preferred_until = now + self._settings.metadata_max_age_seconds
        records = data.records
        if records is None or not len(records):
            return _NOTHING
        return self._records(state, memoryview(records), data, is_alone=len(plan.partitions) == 1)

    def _records(self, state: PartitionState, records: memoryview, data: PartitionData, *, is_alone: bool) -> Outcome:
        aborted = None
        if self._settings.is_read_committed and data.aborted_transactions:
            aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions]
        self.fetched_bytes += len(records)
        contents = contents_of(state, records, aborted, wanted_offset=state.fetch_offset)
        damage = contents.damage
        if contents.end_offset == state.fetch_offset and damage is None:
            if not is_alone:
                # Only the first partition of an answer is sure to get a whole batch; this one comes first later.
                return _NOTHING
            why = f"{len(records)} bytes came and no whole batch among them; raise max.partition.fetch.bytes"
            damage = CorruptBatch(state.topic, state.partition, state.fetch_offset, state.fetch_offset + 1, why)
        chunk = Chunk(
            state.topic,
            state.partition,
            state.fetch_offset,
            contents.end_offset,
            records,
            contents.entries,
            state.fetch_epoch,
            self._settings.check_crcs,
            damage,
            self._decode_key,
            self._decode_value,
        )
        if damage is not None:
            # Nothing behind it is fetched until the user has said where to go on.
            state.phase = Phase.FAILED
        self._prefetch.add(state, chunk, contents.epoch)
        self._assignment.served(state)
        return _RECORDS

    def _error(self, plan: FetchPlan, state: PartitionState, code: ErrorCode, now: float) -> Outcome:
        retry_at = now + self._settings.retry_backoff_seconds
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.preferred_replica == plan.node_id:
                # A follower may not have it yet, or not any more: the leader knows.
                state.preferred_replica = -1
                return _NOTHING
            return Outcome(out_of_range=(state,))
        if code in _MOVED or code in _AGAIN:
            state.retry_at = retry_at
            state.preferred_replica = -1
            return Outcome(is_metadata_stale=code in _MOVED)
        state.fail()
        text = f"{state.topic_partition} cannot be fetched at offset {state.fetch_offset}: {code.name}"
        return Outcome(errors=(error_of(code, text),))


def _is_due(state: PartitionState, now: float) -> bool:
    """Whether a partition can be fetched now and wants to be."""
    if state.phase is not FETCHING or state.is_paused or state.is_fetching or now < state.retry_at:
        return False
    return state.fetch_end is None or state.fetch_offset < state.fetch_end


def _together(outcomes: list[Outcome]) -> Outcome:
    return Outcome(
        any(one.has_records for one in outcomes),
        any(one.is_metadata_stale for one in outcomes),
        tuple(state for one in outcomes for state in one.out_of_range),
        tuple(error for one in outcomes for error in one.errors),
        tuple(leader for one in outcomes for leader in one.leaders),
    )


_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


def _forgotten(partitions: Mapping[TopicPartition, bytes]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for (name, partition), topic_id in partitions.items():
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = topics[name, topic_id] = ForgottenTopic(topic=name, topic_id=topic_id, partitions=[])
        topic.partitions.append(partition)
    return list(topics.values())
