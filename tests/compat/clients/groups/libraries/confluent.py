"""confluent-kafka (librdkafka) as a member of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tests.compat.clients.groups.libraries.member import ANSWER_SECONDS, POLL_SECONDS, Member

_STRATEGIES = {"range": "range", "roundrobin": "roundrobin", "cooperative": "cooperative-sticky"}
_RESETS = {"none": "error"}
_AT_ONCE = 500


class ConfluentMember(Member):
    library = "confluent-kafka"

    def open(self) -> None:
        wanted = self.settings
        given: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "auto.offset.reset": _RESETS.get(wanted["reset"], wanted["reset"]),
            "enable.auto.commit": wanted["auto_commit_ms"] != "0",
            "auto.commit.interval.ms": int(wanted["auto_commit_ms"]) or 5000,
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 500,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "max.poll.interval.ms": int(wanted["poll_ms"]),
            "isolation.level": wanted["isolation"],
            "log_level": 0,
        }
        if wanted["instance"]:
            given["group.instance.id"] = wanted["instance"]
        if wanted["protocol"] == "consumer":
            given["group.protocol"] = "consumer"
        else:
            given["session.timeout.ms"] = int(wanted["session_ms"])
            given["heartbeat.interval.ms"] = int(wanted["heartbeat_ms"])
            given["partition.assignment.strategy"] = _STRATEGIES[wanted["assignor"]]
        self._consumer = Consumer(given)
        self._consumer.subscribe([self.topic], on_assign=self._given, on_revoke=self._revoked, on_lost=self._lost)

    def poll(self) -> None:
        for message in self._consumer.consume(_AT_ONCE, POLL_SECONDS):
            error = message.error()
            if error is None:
                self.records.append(
                    (message.partition() or 0, message.offset() or 0, (message.value() or b"").decode())
                )
            elif error.code() in (KafkaError._FATAL, KafkaError._AUTO_OFFSET_RESET):
                raise KafkaException(error)

    def close(self) -> None:
        self._consumer.close()

    def assignment(self) -> Iterable[int]:
        return [place.partition for place in self._consumer.assignment()]

    def commit(self, how: str) -> None:
        if how == "async":
            self._consumer.commit(asynchronous=True)
        else:
            self._consumer.commit(asynchronous=False)

    def committed(self, partition: int) -> int | None:
        (found,) = self._consumer.committed([TopicPartition(self.topic, partition)], timeout=ANSWER_SECONDS)
        return int(found.offset) if found.offset >= 0 else None

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self.topic, partition, offset))

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        wanted = [TopicPartition(self.topic, partition, timestamp_ms)]
        (found,) = self._consumer.offsets_for_times(wanted, timeout=ANSWER_SECONDS)
        return int(found.offset) if found.offset >= 0 else None

    def _given(self, _: Consumer, places: list[TopicPartition]) -> None:
        self.note("assigned", [place.partition for place in places])

    def _revoked(self, _: Consumer, places: list[TopicPartition]) -> None:
        self.note("revoked", [place.partition for place in places])

    def _lost(self, _: Consumer, places: list[TopicPartition]) -> None:
        self.note("lost", [place.partition for place in places])
