"""The log of decisions: which batch of a query was decided, and with which transactions.

It is a compacted topic on the cluster that the rows go to. The key of a record is the query's, so compaction leaves the
last decision of each. A record is written in a transaction of the query's own *decider*, a transactional id that one
driver at a time has: whoever takes it over shuts out all who had it before, and settles what they left under way. So
there is never more than one decision for a batch, and a driver that was replaced cannot decide.

A read is whole when it has come to the end that the partition had when it began; open transactions of deciders, which
are short, are waited for. The number of partitions is fixed by the hash, not by the topic: when that grows, decisions
stay where they are.
"""

import json
import time
import zlib
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Self

from ottla.client.admin.topics import NewTopic
from ottla.client.errors import BrokerError, Fenced, OttlaError, Unfinished
from ottla.client.sync.admin import Admin
from ottla.client.sync.consumer import Consumer
from ottla.client.sync.producer import Producer
from ottla.client.types import StagedTransaction
from ottla.protocol.errors import ErrorCode
from ottla.spark import clients
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.rows import HandedOver

PARTITIONS: Final = 16
_FORMAT = 1
_POLL_SECONDS = 0.2
_MOST_KNOWN = 256
# Two deciders' lives: whatever is open when a read begins is settled by then.
_DECIDER_TIMEOUT_MS = 15_000
_PATIENCE_SECONDS = 40.0
_LARGEST_DECISION_BYTES = 16 * 1024 * 1024
_LONGEST_PLAIN_BYTES = 64 * 1024
_TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    # What was superseded goes soon: a new process reads a partition from its start.
    "segment.bytes": str(4 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.2",
    "compression.type": "producer",
}


class DecisionState(Enum):
    DECIDED = "decided"
    ENDED = "ended"


@dataclass(frozen=True)
class Decision:
    """A batch that counts. `ENDED` says that every transaction was committed: there is nothing left to do for it."""

    batch_id: int
    state: DecisionState
    transactions: tuple[StagedTransaction, ...]

    def ended(self) -> "Decision":
        return replace(self, state=DecisionState.ENDED, transactions=())

    def to_bytes(self) -> bytes:
        """As JSON; compressed where it is long: a batch of ten thousand tasks has a megabyte of names, most of which is
        the same."""
        fields = {
            "format": _FORMAT,
            "batch": self.batch_id,
            "state": self.state.value,
            "transactions": [list(one) for one in self.transactions],
        }
        plain = json.dumps(fields, separators=(",", ":")).encode()
        return plain if len(plain) <= _LONGEST_PLAIN_BYTES else zlib.compress(plain)

    @classmethod
    def from_bytes(cls, stored: bytes, topic: str) -> "Decision":
        fields = json.loads(stored if stored.startswith(b"{") else zlib.decompress(stored))
        if fields.get("format") != _FORMAT:
            raise OttlaError(
                f"topic {topic} has a decision in format {fields.get('format')!r}, which this version of ottla does "
                "not read: use the version that wrote it, or a newer one"
            )
        transactions = tuple(StagedTransaction(*one) for one in fields["transactions"])
        return cls(fields["batch"], DecisionState(fields["state"]), transactions)


def ensure_topic(options: SinkOptions) -> None:
    """Create the topic where it is missing, with the broker's own number of replicas. One that was seen is not looked
    for again by this process."""
    _create_if_missing(options.decisions_topic, tuple(options.connection_settings("driver").items()))


@lru_cache(_MOST_KNOWN)
def _create_if_missing(name: str, connection: tuple[tuple[str, object], ...]) -> None:
    admin = clients.admin(dict(connection))
    found = admin.describe_topics(name)
    if name in found.errors:
        topic = NewTopic(name, partitions=PARTITIONS, configs=_TOPIC_SETTINGS)
        made = admin.create_topics(topic)
        error = made.errors.get(name)
        if isinstance(error, BrokerError) and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        if error is not None:
            raise OttlaError(
                f"option decisionsTopic={name}: the topic of decisions does not exist and cannot be created ({error}): "
                f"create it with {PARTITIONS} partitions and cleanup.policy=compact"
            )
    elif len(found[name].partitions) < PARTITIONS:
        raise OttlaError(
            f"option decisionsTopic={name}: that topic has {len(found[name].partitions)} partitions, and decisions "
            f"need {PARTITIONS}: name another one, which is created if need be"
        )


class DecisionLog:
    """The decisions of one query, or of one batch write; `key` is its name."""

    def __init__(self, options: SinkOptions, key: str) -> None:
        self._options = options
        self.key = key

    @property
    def partition(self) -> int:
        return zlib.crc32(self.key.encode()) % PARTITIONS

    def last(self) -> Decision | None:
        """The last decision that stands. Nothing that was decided before the call is missed."""
        settings = self._options.connection_settings("decisions")
        name = ("decisions", self._options.decisions_topic, self.partition, *clients.name_of("reader", settings))
        reader = clients.kept(name, lambda: DecisionReader(self._options, self.partition, "read_committed"))
        try:
            reader.read_to_end()
        except BaseException:
            clients.forget(name)
            raise
        found = reader.last.get(self.key)
        return None if found is None else Decision.from_bytes(found, self._options.decisions_topic)

    def may_have_decided(self, batch_id: int) -> bool:
        """Whether a decision for the batch is there, even one that does not stand yet, or never will."""
        reader = DecisionReader(self._options, self.partition, "read_uncommitted")
        try:
            reader.read_to_end()
            found = [Decision.from_bytes(one, self._options.decisions_topic) for one in reader.seen(self.key)]
            return any(decision.batch_id >= batch_id for decision in found)
        finally:
            reader.close()


class DecisionReader:
    """Follows one partition of the topic, from its start."""

    def __init__(self, options: SinkOptions, partition: int, isolation: str, admin: Admin | None = None) -> None:
        """`admin` is the process's unless one is given."""
        self._topic = options.decisions_topic
        self._partition = partition
        self._admin = admin
        self._admin_settings = options.connection_settings("driver")
        settings = {**options.connection_settings("decisions"), "isolation.level": isolation}
        self._consumer: Consumer[Any, Any] = Consumer(config={**settings, "auto.offset.reset": "earliest"})
        self._consumer.assign([(self._topic, partition)])
        self._consumer.seek_to_beginning()
        self._all: dict[str, list[bytes]] = {}
        self.last: dict[str, bytes] = {}

    def read_to_end(self) -> None:
        """Read up to the end that the partition has now, as readers of uncommitted records see it."""
        place = (self._topic, self._partition)
        latest = (self._admin or clients.admin(self._admin_settings)).list_offsets([place])[place]  # type: ignore[index]
        end = latest.offset if latest is not None else 0
        gives_up_at = time.monotonic() + _PATIENCE_SECONDS
        while self._consumer.position(place) < end:
            for record in self._consumer.poll(_POLL_SECONDS):
                self._take(record.key, record.value)
            if time.monotonic() > gives_up_at:
                raise Unfinished(
                    f"the decisions in {self._topic}-{self._partition} could not be read up to offset {end} within "
                    f"{_PATIENCE_SECONDS:.0f} s, because a transaction is open there or its leader is away: start the "
                    "query again"
                )

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        name = (key or b"").decode()
        if value is None:
            self.last.pop(name, None)
        else:
            self.last[name] = value
            self._all.setdefault(name, []).append(value)
            del self._all[name][:-8]

    def seen(self, key: str) -> list[bytes]:
        """The last few of a key, the ones that were superseded too."""
        return self._all.get(key, [])

    def close(self) -> None:
        self._consumer.close()


class Decider:
    """The one who may decide: from the moment it is made, nobody who was it before can.

    A driver keeps it from batch to batch. `last` is what it has decided last: nobody else can have decided since."""

    def __init__(self, options: SinkOptions, log: DecisionLog) -> None:
        self._log = log
        self._topic = options.decisions_topic
        self.transactional_id = decider_id(log.key)
        self.last: Decision | None = None
        settings: dict[str, object] = {
            # Rows that it writes are written as tasks would write them.
            **options.producer_settings,
            "max.request.size": _LARGEST_DECISION_BYTES,
            **options.connection_settings("decider"),
            "transactional.id": self.transactional_id,
            "transaction.timeout.ms": _DECIDER_TIMEOUT_MS,
            "linger.ms": 0,
        }
        self._producer: Producer[Any, Any] = Producer(config=settings)
        self._producer.init_transactions()

    def write(self, decision: Decision, rows: HandedOver | None = None) -> None:
        """Returns when the decision stands, and with it these rows, which are written in the same transaction. When it
        raises, both may stand or not: whoever takes over will know."""
        self.last = None
        self._write(decision.to_bytes(), rows)
        self.last = decision

    def erase(self, rows: HandedOver | None = None) -> None:
        """Nobody will ask for it again. These rows are written in the same transaction."""
        self._write(None, rows)

    def _write(self, value: bytes | None, rows: HandedOver | None) -> None:
        try:
            with self._producer.transaction():
                if rows is not None:
                    rows.send_with(self._producer)
                self._producer.send(self._topic, value, key=self._log.key.encode(), partition=self._log.partition)
        except Fenced as error:
            raise Fenced(
                error.code,
                f"{self._log.key}: another driver has taken this query over, and goes on with it; this one must stop",
            ) from None

    def close(self) -> None:
        self._producer.close(timeout=_DECIDER_TIMEOUT_MS / 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def decider_id(key: str) -> str:
    return f"{key}-decider"
