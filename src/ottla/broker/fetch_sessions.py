"""Fetch sessions (KIP-227): a client names its partitions once, then sends and gets only what changed.

| session id | epoch | meaning                                             |
|------------|-------|-----------------------------------------------------|
| 0          | -1    | no session: a full fetch that leaves nothing behind |
| n          | -1    | close session n, and a full fetch without one       |
| 0 or n     | 0     | close session n, and a full fetch that opens one    |
| n          | e > 0 | the e-th incremental fetch of session n             |

What must stay true: a partition is left out of an incremental answer only if the client would learn nothing:
no records, no error, same high watermark and log start as in its last answer. Partitions that had records go
to the end of the line, so that a small fetch limit starves nobody. A session that has lost its last partition
is closed.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from ottla.protocol.uuids import ZERO_UUID
from ottla.runtime import Clock, IdSource

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
LAST_EPOCH = 2**31 - 1
TOPIC_IDS_SINCE_VERSION = 13

PartitionKey = tuple[str | bytes, int]


@dataclass(slots=True)
class FetchTarget:
    """One partition of a fetch: named as the client named it, by name or by id."""

    topic: str
    topic_id: bytes
    request: FetchPartition
    last_high_watermark: int = -1
    last_log_start_offset: int = -1

    @property
    def key(self) -> PartitionKey:
        return (self.topic_id if self.topic_id != ZERO_UUID else self.topic, self.request.partition)

    def learns_from(self, answer: PartitionData) -> bool:
        """Whether the client would learn something from this answer; remembers what it then knows."""
        news = bool(
            answer.records
            or answer.error_code
            or answer.high_watermark != self.last_high_watermark
            or answer.log_start_offset != self.last_log_start_offset
            or answer.diverging_epoch.epoch >= 0
            or answer.preferred_read_replica >= 0
        )
        # After an error the next good answer is news, whatever it says.
        self.last_high_watermark = -1 if answer.error_code else answer.high_watermark
        self.last_log_start_offset = answer.log_start_offset
        return news


@dataclass(slots=True)
class FetchSession:
    session_id: int
    uses_topic_ids: bool
    epoch: int
    last_used_ms: float
    targets: OrderedDict[PartitionKey, FetchTarget]


@dataclass(slots=True)
class FetchContext:
    """What one request reads, and how its answer is to be cut."""

    targets: list[FetchTarget]
    session: FetchSession | None = None
    incremental: bool = False

    @property
    def session_id(self) -> int:
        return 0 if self.session is None else self.session.session_id

    def select(self, answers: list[tuple[FetchTarget, PartitionData]]) -> list[tuple[FetchTarget, PartitionData]]:
        """The answers to send: all of them, or in an incremental fetch those that say something new."""
        session = self.session
        if session is None:
            return answers
        selected = []
        for target, answer in answers:
            news = target.learns_from(answer)
            if news or not self.incremental:
                selected.append((target, answer))
            if answer.records and target.key in session.targets:
                session.targets.move_to_end(target.key)
        return selected

    def preview(self, answers: list[tuple[FetchTarget, PartitionData]]) -> list[tuple[FetchTarget, PartitionData]]:
        """What `select` would give; nothing is remembered."""
        if not self.incremental:
            return answers
        return [(target, answer) for target, answer in answers if replace(target).learns_from(answer)]


class FetchSessions:
    """The sessions of this broker, bounded: when all slots are taken, the longest unused one may be evicted."""

    def __init__(self, slots: int, clock: Clock, ids: IdSource, eviction_ms: int = 120_000) -> None:
        self._slots = slots
        self._clock = clock
        self._ids = ids
        self._eviction_ms = eviction_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def context(self, request: FetchRequest, version: int) -> FetchContext:
        """Find or open the session of a request; raises Kafka's session errors."""
        by_id = version >= TOPIC_IDS_SINCE_VERSION
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            targets = _targets(request)
            if request.session_epoch == FINAL_EPOCH:
                return FetchContext(list(targets.values()))
            return FetchContext(list(targets.values()), self._open(targets, by_id))
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {request.session_id}")
        if session.epoch != request.session_epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session.session_id} is at epoch {session.epoch}, not {request.session_epoch}",
            )
        if session.uses_topic_ids != by_id:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a fetch session names topics by name or by id, not both"
            )
        self._update(session, request)
        if not session.targets:
            del self._sessions[session.session_id]
            return FetchContext([])
        return FetchContext(list(session.targets.values()), session, incremental=True)

    def withhold(self, context: FetchContext) -> int:
        """The session to name in an empty answer that is sent in place of what was read.

        The next incremental fetch gives what was withheld; a session that was to begin with it has not begun.
        """
        session = context.session
        if session is not None and not context.incremental:
            self._sessions.pop(session.session_id, None)
            context.session = None
        return context.session_id

    def _open(self, targets: OrderedDict[PartitionKey, FetchTarget], by_id: bool) -> FetchSession | None:
        now_ms = self._clock.monotonic() * 1000
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms < self._eviction_ms:
                return None
            del self._sessions[oldest.session_id]
        session_id = self._ids.below(LAST_EPOCH) + 1
        while session_id in self._sessions:
            session_id = self._ids.below(LAST_EPOCH) + 1
        session = FetchSession(session_id, by_id, INITIAL_EPOCH + 1, now_ms, targets)
        self._sessions[session_id] = session
        return session

    def _update(self, session: FetchSession, request: FetchRequest) -> None:
        session.epoch = 1 if session.epoch == LAST_EPOCH else session.epoch + 1
        session.last_used_ms = self._clock.monotonic() * 1000
        self._sessions.move_to_end(session.session_id)
        for key, target in _targets(request).items():
            known = session.targets.get(key)
            if known is None:
                session.targets[key] = target
            else:
                known.request = target.request
        for forgotten in request.forgotten_topics_data:
            name: str | bytes = forgotten.topic_id if forgotten.topic_id != ZERO_UUID else forgotten.topic
            for index in forgotten.partitions:
                session.targets.pop((name, index), None)


def _targets(request: FetchRequest) -> OrderedDict[PartitionKey, FetchTarget]:
    targets: OrderedDict[PartitionKey, FetchTarget] = OrderedDict()
    for topic in request.topics:
        topic_id = topic.topic_id
        name: str | bytes = topic_id if topic_id != ZERO_UUID else topic.topic
        for partition in topic.partitions:
            targets[name, partition.partition] = FetchTarget(topic.topic, topic_id, partition)
    return targets
