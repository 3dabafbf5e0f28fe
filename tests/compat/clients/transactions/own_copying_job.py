"""`python -m tests.compat.clients.transactions.own_copying_job <bootstrap> <from> <to> <group> <id> <protocol>`

What `copying_job` does, with Ottla's own client.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
from typing import Any

from ottla import Consumer, Producer, TopicPartition
from ottla.client.errors import BrokerUnavailable, CommitFailed, MustAbort, NotAssigned, OttlaError, Unfinished

AT_ONCE = 100
CALL_SECONDS = 20.0
OFFSETS_SECONDS = 5.0
POLL_SECONDS = 0.1
_QUICK: dict[str, Any] = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 200}


class OwnCopyingJob:
    def __init__(self, bootstrap: str, source: str, target: str, group: str, identity: str, protocol: str) -> None:
        self._target = target
        given: dict[str, Any] = {"group_protocol": protocol, **_QUICK}
        if protocol == "classic":
            given |= {"session_timeout_ms": 2000, "heartbeat_interval_ms": 200}
        self._consumer: Consumer[bytes, bytes] = Consumer(
            bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            fetch_max_wait_ms=20,
            **given,
        )
        self._producer: Producer[bytes, bytes] = Producer(
            bootstrap, transactional_id=identity, transaction_timeout_ms=10_000, linger_ms=1, **_QUICK
        )
        self._producer.init_transactions(CALL_SECONDS)
        self._consumer.subscribe([source])

    def run(self) -> None:
        while True:
            records = self._consumer.poll(POLL_SECONDS, AT_ONCE)
            if records:
                self._copy(records)

    def _copy(self, records: list[Any]) -> None:
        ends: dict[TopicPartition, int] = {}
        self._producer.begin_transaction()
        try:
            for record in records:
                self._producer.send(self._target, record.value, partition=record.partition)
                ends[TopicPartition(record.topic, record.partition)] = record.offset + 1
            self._producer.send_offsets_to_transaction(ends, self._consumer.group_metadata(), OFFSETS_SECONDS)
            self._repeat(self._producer.commit_transaction)
        except (MustAbort, CommitFailed, Unfinished, BrokerUnavailable) as error:
            sys.stderr.write(f"start over after {error!r}\n")
            self._start_over()
            return
        sys.stdout.write(f"{len(ends)}\n")
        sys.stdout.flush()

    def _start_over(self) -> None:
        """Nothing was copied: read again from the last committed offsets."""
        self._repeat(self._producer.abort_transaction)
        for partition, committed in self._consumer.committed(timeout=CALL_SECONDS).items():
            try:
                self._consumer.seek(partition, 0 if committed is None else committed.offset)
            except NotAssigned:
                continue

    @staticmethod
    def _repeat(call: Any) -> None:
        while True:
            try:
                call(CALL_SECONDS)
            except Unfinished:
                continue
            else:
                return


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    try:
        OwnCopyingJob(*sys.argv[1:]).run()
    except OttlaError as problem:
        sys.exit(f"ended by {problem!r}")
