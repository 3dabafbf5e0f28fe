"""Where a consumer stands in each partition, and what it has to find out before it may fetch there.

| phase        | what is missing                                                    | ends with                      |
|--------------|--------------------------------------------------------------------|--------------------------------|
| COMMITTED    | the offset that the group committed                                | FETCHING, or RESETTING         |
| RESETTING    | the offset that a time, the start or the end stands for            | FETCHING                       |
| VALIDATING   | whether the log still has what was read, after a change of leader  | FETCHING, or RESETTING         |
| FETCHING     | nothing                                                            | a seek, an error, a new leader |
| FAILED       | an answer of the user to an error that was raised: a seek          | FETCHING, or RESETTING         |

Two offsets move: `next_offset`, of the next record that is handed out, and `fetch_offset`, of the next one that is
asked for. What lies between is buffered in chunks. The thread that takes records moves the former, inside of the chunk
it takes from; everything else belongs to the loop.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from ottla.client.consumer._twin import Chunk
from ottla.client.consumer.values import NO_EPOCH, NO_OFFSET, ChunkMode
from ottla.client.errors import NotAssigned
from ottla.client.types import TopicPartition


class Phase(Enum):
    COMMITTED = "committed"
    RESETTING = "resetting"
    VALIDATING = "validating"
    FETCHING = "fetching"
    FAILED = "failed"


# To look a member up in its enum costs more than to compare with it.
FETCHING = Phase.FETCHING


class Position(NamedTuple):
    """An offset, and the leader epoch of the record before it (NO_EPOCH where it is not known)."""

    offset: int
    epoch: int = NO_EPOCH


class PartitionState:
    """One assigned partition. `version` rises with every seek, so that answers to older questions are recognised."""

    __slots__ = (
        "_offset",
        "chunks",
        "epoch",
        "fetch_end",
        "fetch_epoch",
        "fetch_offset",
        "high_watermark",
        "is_asking",
        "is_fetching",
        "is_paused",
        "last_stable_offset",
        "lead",
        "leader_epoch",
        "log_start_offset",
        "partition",
        "phase",
        "preferred_replica",
        "preferred_until",
        "reset_time",
        "retry_at",
        "topic",
        "topic_partition",
        "turn",
        "version",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_partition = TopicPartition(topic, partition)
        self.phase = Phase.COMMITTED
        self.version = 0
        self.turn = 0
        self.chunks: deque[Chunk] = deque()
        self.lead: Chunk | None = None
        self.fetch_offset = NO_OFFSET
        # Whoever reads up to an offset only wants nothing fetched from there on; None: there is no such end.
        self.fetch_end: int | None = None
        self.fetch_epoch = NO_EPOCH
        self.leader_epoch = NO_EPOCH
        self.epoch = NO_EPOCH
        self._offset = NO_OFFSET
        self.reset_time = 0
        self.is_paused = False
        self.is_fetching = False
        self.is_asking = False
        self.retry_at = 0.0
        self.preferred_replica = -1
        self.preferred_until = 0.0
        self.high_watermark = NO_OFFSET
        self.last_stable_offset = NO_OFFSET
        self.log_start_offset = NO_OFFSET

    @property
    def next_offset(self) -> int:
        """Of the next record that is handed out; NO_OFFSET while it is not known. Safe from any thread."""
        lead = self.lead
        return self._offset if lead is None else lead.next_offset

    @property
    def settled_offset(self) -> int:
        """Before this one the user is done with everything. Safe from any thread."""
        lead = self.lead
        return self._offset if lead is None else lead.settled_offset

    @property
    def next_epoch(self) -> int:
        lead = self.lead
        return self.epoch if lead is None else lead.next_epoch

    @property
    def is_known(self) -> bool:
        """Whether there is a position; also one that an error keeps from being fetched."""
        return self._offset != NO_OFFSET and self.phase in (Phase.FETCHING, Phase.VALIDATING, Phase.FAILED)

    def take_lead(self, chunk: Chunk) -> None:
        """Records are handed out from this chunk now; what was not settled in the one before stays unsettled."""
        before = self.lead
        if before is not chunk:
            chunk.settled_offset = self._offset if before is None else before.settled_offset
            self.lead = chunk

    def buffered_bytes(self) -> int:
        """What is still held; chunks that were handed out entirely are forgotten here."""
        chunks = self.chunks
        while chunks and chunks[0].size_bytes == 0:
            chunks.popleft()
        buffered_bytes = 0
        for chunk in chunks:
            buffered_bytes += chunk.size_bytes
        return buffered_bytes

    def stand_at(self, position: Position) -> None:
        """Go on from there; nothing is buffered any more (see `Prefetch.drop`)."""
        self.version += 1
        self.lead = None
        self._offset = self.fetch_offset = position.offset
        self.epoch = self.fetch_epoch = position.epoch
        self.phase = Phase.FETCHING
        self.retry_at = 0.0

    def fetch_again(self, place: Position, forgotten: Iterable[Chunk]) -> None:
        """These were fetched from there on, and are given up (see `Prefetch.forget`)."""
        self.version += 1
        self.fetch_offset, self.fetch_epoch = place
        self.retry_at = 0.0
        for chunk in forgotten:
            self.chunks.remove(chunk)
            if chunk.damage is not None and self.phase is Phase.FAILED:
                # It is found again where it is fetched again.
                self.phase = Phase.FETCHING

    def need_reset(self, time_ms: int) -> None:
        """The position is unknown until ListOffsets has told what this time (or OffsetSpec) stands for."""
        self.version += 1
        self.lead = None
        self._offset = self.fetch_offset = NO_OFFSET
        self.epoch = self.fetch_epoch = NO_EPOCH
        self.reset_time = time_ms
        self.phase = Phase.RESETTING

    def fail(self) -> None:
        """Fetch no more until the user has said where to go on. The position stays what it was."""
        self.version += 1
        self.phase = Phase.FAILED

    def extend(self, chunk: Chunk, epoch: int) -> None:
        """A fetch brought this, which begins where the last one ended."""
        self.chunks.append(chunk)
        self.fetch_offset = chunk.end_offset
        if epoch != NO_EPOCH:
            self.fetch_epoch = epoch

    def see_leader_epoch(self, epoch: int) -> bool:
        """The metadata has this epoch. A newer one than before puts what was fetched in doubt, which is told: what is
        buffered has to be held back then (see `Prefetch.hold`)."""
        if epoch <= self.leader_epoch:
            return False
        is_new_leader = self.leader_epoch != NO_EPOCH or self.fetch_epoch != NO_EPOCH
        self.leader_epoch = epoch
        if self.phase is Phase.FETCHING and is_new_leader and NO_EPOCH < self.fetch_epoch < epoch:
            self.phase = Phase.VALIDATING
            return True
        return False

    def hold(self) -> None:
        """Hand out nothing that is buffered, for now."""
        for chunk in self.chunks:
            chunk.mode = ChunkMode.HELD

    @property
    def may_be_read(self) -> bool:
        """Whether what is buffered may be handed out: also what lies before a place that cannot be read."""
        return not self.is_paused and self.phase in (Phase.FETCHING, Phase.FAILED)

    def resume(self) -> None:
        if self.may_be_read:
            for chunk in self.chunks:
                chunk.mode = ChunkMode.READY


_TURN = attrgetter("turn")


class Assignment:
    """The partitions that a consumer reads. `in_turn` is fair: what brought records last comes last."""

    def __init__(self) -> None:
        self._turn = 0
        self._states: dict[TopicPartition, PartitionState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(list(self._states.values()))

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._states

    def partitions(self) -> list[TopicPartition]:
        return sorted(self._states)

    def get(self, partition: TopicPartition) -> PartitionState | None:
        return self._states.get(partition)

    def state(self, partition: TopicPartition) -> PartitionState:
        found = self._states.get(partition)
        if found is None:
            raise NotAssigned(f"{partition} is not assigned to this consumer: assign it, or subscribe to its topic")
        return found

    def states(self, partitions: Iterable[TopicPartition] | None) -> list[PartitionState]:
        """Of these, or of all."""
        return list(self) if partitions is None else [self.state(one) for one in partitions]

    def add(self, partition: TopicPartition) -> PartitionState:
        state = self._states.get(partition)
        if state is None:
            state = self._states[partition] = PartitionState(*partition)
        return state

    def remove(self, partition: TopicPartition) -> PartitionState | None:
        return self._states.pop(partition, None)

    def served(self, state: PartitionState) -> None:
        """It brought records: the others come first now."""
        self._turn += 1
        state.turn = self._turn

    def in_turn(self) -> list[PartitionState]:
        states = list(self._states.values())
        if len(states) > 1:
            states.sort(key=_TURN)
        return states

    def is_settled(self, now: float) -> bool:
        """Whether all partitions can be fetched: nothing has to be found out, and none waits after an error."""
        for state in self._states.values():  # noqa: SIM110 - after every fetch: a generator costs more than the look
            if state.phase is not FETCHING or state.retry_at > now:
                return False
        return True

    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self._states})
