"""One source into one topic, exactly once; why it is, is told in the package's docstring."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla.capture.changes import (
    HOW_TO_BEGIN_ANEW,
    CaptureError,
    Change,
    Settled,
    Source,
    SourceUnavailable,
    Table,
    TablesChanged,
)
from ottla.capture.positions import Positions, Standing
from ottla.client.errors import DeliveryTimeout, OttlaError
from ottla.client.sync.admin import Admin
from ottla.client.sync.producer import Producer

# So many changes are enough for a transaction; fewer are sent as soon as the source has no more for now.
_CHANGES_A_TRANSACTION = 5_000
# A database in which other things happen is told now and then that we need nothing of them.
_IDLE_SECONDS = 10.0
_RETRY_SECONDS = 1.0
# A snapshot is one transaction. Brokers allow no more than this unless their transaction.max.timeout.ms is raised.
_TRANSACTION_TIMEOUT_MS = 900_000


class Connector:
    """Moves what a source gives to a topic, from where the connector of this name stopped.

    1. Take over the transactional id: what an older connector left open is aborted, and it is shut out.
    2. Read the position.
    3. If there is none: all rows of a snapshot and its position, in one transaction.
    4. For ever: changes and the position behind them in one transaction, then tell the source.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        topic: str,
        tables: Iterable[Table],
        config: Mapping[str, Any],
        *,
        begins_anew: bool = False,
    ) -> None:
        """`config` says how to reach the brokers. One that begins anew takes a snapshot whatever its position is."""
        self._name = name
        self._source = source
        self._topic = topic
        self._tables = {table.name: table for table in tables}
        self._config = dict(config)
        self._begins_anew = begins_anew
        self._transactional_id = f"ottla-capture-{name}"
        self._positions = Positions(f"{topic}.positions", name)

    def run(self, tell: Callable[[str], object], stop: threading.Event | None = None) -> None:
        """Until `stop` is set, or an error comes that time does not heal; others are told, and it begins again."""
        stop = stop or threading.Event()
        while not stop.is_set():
            try:
                self._live(tell, stop)
            except OttlaError as error:
                if not (isinstance(error, DeliveryTimeout) or error.is_retriable):
                    raise
                tell(f"{error}; trying again")
                stop.wait(_RETRY_SECONDS)

    def _live(self, tell: Callable[[str], object], stop: threading.Event) -> None:
        """From taking over the id on. A source that is lost is opened again by who still holds the id."""
        with Admin(config=self._config) as admin:
            if self._topic not in {topic.name for topic in admin.list_topics()}:
                raise CaptureError(f"topic {self._topic} does not exist: create it first, or correct the name")
            self._positions.prepare(admin)
        settings = {"transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS, **self._config}
        producer: Producer[bytes, bytes]
        with Producer(config={**settings, "transactional.id": self._transactional_id}) as producer:
            producer.init_transactions()
            standing = self._positions.read(self._config)
            shipping = _Shipping(producer, self._topic, self._tables, self._positions, standing)
            if self._begins_anew:
                shipping.position = None
            elif standing is not None:
                self._check_tables(standing)
            while True:
                try:
                    self._move(shipping, stop)
                    return
                except SourceUnavailable as error:
                    tell(f"{error}; trying again")
                finally:
                    self._source.close()
                if stop.wait(_RETRY_SECONDS):
                    return
                shipping.begin_again()

    def _check_tables(self, standing: Standing) -> None:
        """A table that is added now has rows that nobody told of; one that is left out would miss changes if it came
        back; another key would put the changes of a row into two partitions."""
        before = standing.tables
        now = {table.name: table.key for table in self._tables.values()}
        if before is None or dict(before) == now:
            return
        had, asked = (", ".join(f"{table}={key}" for table, key in sorted(one.items())) for one in (before, now))
        raise TablesChanged(
            f"connector {self._name} has captured {had} so far, and is asked for {asked}: ask for the same tables and"
            f" keys, and capture more tables under another --name. {HOW_TO_BEGIN_ANEW}"
        )

    def _move(self, shipping: _Shipping, stop: threading.Event) -> None:
        if shipping.position is not None:
            self._follow(shipping, shipping.position, stop)
            return
        shipping.begin_incarnation()
        with self._source.snapshot() as snapshot:
            for change in snapshot.rows:
                if stop.is_set():
                    return
                shipping.send(change)
            shipping.commit(snapshot.position)
        self._begins_anew = False
        self._follow(shipping, snapshot.position, stop)

    def _follow(self, shipping: _Shipping, position: int, stop: threading.Event) -> None:
        """Commit between two commits of the source only: one that is partly here has no position to go on from."""
        committed_at = time.monotonic()
        is_between = True
        for item in self._source.stream(position):
            if isinstance(item, Change):
                shipping.send(item)
                is_between = False
                continue
            if isinstance(item, Settled):
                position = max(position, item.position)
                is_between = True
            is_ending = stop.is_set()
            is_due = shipping.waiting >= _CHANGES_A_TRANSACTION or (
                shipping.waiting > 0 and (item is None or is_ending)
            )
            is_idle = time.monotonic() - committed_at > _IDLE_SECONDS
            if is_between and position != shipping.position and (is_due or is_idle):
                shipping.commit(position)
                self._source.confirm(position)
                committed_at = time.monotonic()
            if is_ending:
                return


class _Shipping:
    """Changes on their way, in a transaction that the first of them begins, and the position that is committed."""

    def __init__(
        self,
        producer: Producer[bytes, bytes],
        topic: str,
        tables: Mapping[str, Table],
        positions: Positions,
        standing: Standing | None,
    ) -> None:
        self.waiting = 0
        self.position = None if standing is None else standing.position
        self._incarnation = 0 if standing is None else standing.incarnation
        self._producer = producer
        self._topic = topic
        self._tables = tables
        self._positions = positions
        self._numbers = _Numbers()

    def begin_incarnation(self) -> None:
        """A snapshot follows: it and what comes after it are newer than all that was told before. The clock sees to
        that where the position that would say so was deleted."""
        self._incarnation = max(self._incarnation + 1, time.time_ns() // 1_000_000)

    def send(self, change: Change) -> None:
        if self.waiting == 0:
            self._producer.begin_transaction()
        table = self._tables[change.table]
        table.check(change.after or change.before or {})
        for key, part in change.by_key(table.key):
            value = part.to_json(self._incarnation, self._numbers.next(part.position), table.time)
            key_bytes = None if key is None else str(key).encode()
            self._producer.send(self._topic, value, key=key_bytes, timestamp=part.commit_time_ms)
            self.waiting += 1

    def commit(self, position: int | None) -> None:
        """What waits, if anything does, and the position behind it."""
        if self.waiting == 0:
            self._producer.begin_transaction()
        keys = {table.name: table.key for table in self._tables.values()}
        standing = None if position is None else Standing(position, self._incarnation, keys)
        self._positions.write(self._producer, standing)
        self._producer.commit_transaction()
        self.waiting = 0
        self.position = position

    def begin_again(self) -> None:
        """Drop what waits. The position is written once more, which only the holder of the id can do: a connector that
        lost its source to the one that took its place ends here, and does not take it back."""
        if self.waiting > 0:
            self._producer.abort_transaction()
            self.waiting = 0
        self._numbers = _Numbers()
        self.commit(self.position)


class _Numbers:
    """The numbers of the changes of one commit. A commit is always given whole, so they are the same each time."""

    def __init__(self) -> None:
        self._position = -1
        self._next = 0

    def next(self, position: int) -> int:
        if position != self._position:
            self._position, self._next = position, 0
        self._next += 1
        return self._next - 1
