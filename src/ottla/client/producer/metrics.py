"""The producer's numbers, under Kafka's names (the group `producer-metrics`)."""

from collections.abc import Mapping

from ottla.client.producer._twin import twin
from ottla.client.producer.batches import HEADER_BYTES, Batch


class _Average:
    """The mean and the largest of what was seen."""

    __slots__ = ("count", "largest", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.largest = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        if value > self.largest:
            self.largest = value

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


class ProducerMetrics:
    """Counts since the producer was made. Rates are left to whoever reads the totals twice."""

    def __init__(self) -> None:
        self.record_sends = 0
        self.record_bytes = 0
        self.record_errors = 0
        self.record_retries = 0
        self.batch_splits = 0
        self.flush_seconds = 0.0
        self._batch_bytes = _Average()
        self._batch_records = _Average()
        self._queue_seconds = _Average()
        self._latency_seconds = _Average()

    def batch_taken(self, batch: Batch, now: float) -> None:
        self._queue_seconds.add(now - batch.created_at)
        self._batch_bytes.add(batch.wire_bytes)
        self._batch_records.add(batch.count)

    def batch_written(self, batch: Batch) -> None:
        self.record_sends += batch.count
        self.record_bytes += HEADER_BYTES + batch.size_bytes

    def answered(self, seconds: float) -> None:
        self._latency_seconds.add(seconds)

    def as_dict(self, appender: "twin.Appender", buffer_bytes: int, in_flight: int) -> Mapping[str, float]:
        taken = self._batch_records
        return {
            "record-send-total": self.record_sends,
            "byte-total": self.record_bytes,
            "record-error-total": self.record_errors,
            "record-retry-total": self.record_retries,
            "batch-split-total": self.batch_splits,
            "batch-size-avg": self._batch_bytes.mean,
            "batch-size-max": self._batch_bytes.largest,
            "records-per-request-avg": taken.total / self._latency_seconds.count
            if self._latency_seconds.count
            else 0.0,
            "record-size-avg": appender.appended_bytes / appender.appended_records
            if appender.appended_records
            else 0.0,
            "record-queue-time-avg": self._queue_seconds.mean * 1000,
            "record-queue-time-max": self._queue_seconds.largest * 1000,
            "request-latency-avg": self._latency_seconds.mean * 1000,
            "request-latency-max": self._latency_seconds.largest * 1000,
            "request-total": self._latency_seconds.count,
            "requests-in-flight": in_flight,
            "buffer-total-bytes": buffer_bytes,
            "buffer-available-bytes": appender.available_bytes,
            "flush-time-ns-total": self.flush_seconds * 1e9,
        }
