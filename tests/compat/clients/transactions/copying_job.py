"""`python -m tests.compat.clients.transactions.copying_job <bootstrap> <from> <to> <group> <id> <protocol>`

Copies records of one topic to another, each to the partition that it came from, some at a time: they and the offsets
behind them are one transaction. It runs until it is ended; what cannot be mended ends it. A line is printed whenever a
transaction was committed. `CopyingJob.java` does the same.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

AT_ONCE = 100
CALL_SECONDS = 20.0
OFFSETS_SECONDS = 2.0
# The library was seen to wait for ever in send_offsets_to_transaction after its coordinator had been away, whatever
# timeout it was given and on Apache Kafka too. A job that does not come back is ended by an alarm.
LONGEST_SECONDS = 8
POLL_SECONDS = 0.1
_QUICK = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}


class CopyingJob:
    def __init__(self, bootstrap: str, source: str, target: str, group: str, identity: str, protocol: str) -> None:
        self._target = target
        self._disturbed = False
        given: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 20,
            **_QUICK,
        }
        if protocol == "consumer":
            given["group.protocol"] = "consumer"
        else:
            given |= {"session.timeout.ms": 2000, "heartbeat.interval.ms": 200}
        self._consumer = Consumer(given)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": identity, "transaction.timeout.ms": 10_000, **_QUICK}
        )
        self._producer.init_transactions(CALL_SECONDS)
        self._consumer.subscribe(
            [source], on_assign=self._rebalanced, on_revoke=self._rebalanced, on_lost=self._rebalanced
        )

    def run(self) -> None:
        while True:
            first = self._consumer.poll(POLL_SECONDS)
            if first is not None and first.error() is None:
                signal.alarm(LONGEST_SECONDS)
                self._copy(first)
                signal.alarm(0)

    def _rebalanced(self, *_: object) -> None:
        self._disturbed = True

    def _copy(self, first: Message) -> None:
        """Partitions that came or went since the first record make the whole transaction void."""
        self._disturbed = False
        self._producer.begin_transaction()
        try:
            ends = self._send(first)
            if self._disturbed:
                self._start_over()
                return
            offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]
            metadata = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(offsets, metadata, OFFSETS_SECONDS)
            self._repeat(lambda: self._producer.commit_transaction(CALL_SECONDS))
        except KafkaException as problem:
            error = problem.args[0]
            if error.fatal() or not (error.txn_requires_abort() or error.retriable() or error.code() in _OF_THE_GROUP):
                raise
            sys.stderr.write(f"start over after {error}\n")
            self._start_over()
            return
        sys.stdout.write(f"{len(ends)}\n")
        sys.stdout.flush()

    def _send(self, first: Message) -> dict[tuple[str, int], int]:
        ends: dict[tuple[str, int], int] = {}
        message: Message | None = first
        count = 0
        while message is not None and not self._disturbed:
            if message.error() is None:
                topic, place, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None
                assert place is not None
                assert offset is not None
                self._producer.produce(self._target, message.value(), partition=place)
                ends[topic, place] = offset + 1
                count += 1
            message = self._consumer.poll(0.01) if count < AT_ONCE else None
        return ends

    def _start_over(self) -> None:
        """Nothing was copied: read again from the last committed offsets."""
        self._repeat(lambda: self._producer.abort_transaction(CALL_SECONDS))
        owned = self._consumer.assignment()
        for place in self._consumer.committed(owned, CALL_SECONDS) if owned else []:
            place.offset = place.offset if place.offset >= 0 else OFFSET_BEGINNING
            self._consumer.seek(place)

    @staticmethod
    def _repeat(call: Any) -> None:
        while True:
            try:
                call()
            except KafkaException as problem:
                if not problem.args[0].retriable():
                    raise
            else:
                return


_OF_THE_GROUP = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_MEMBER_EPOCH,
)

if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    CopyingJob(*sys.argv[1:]).run()
