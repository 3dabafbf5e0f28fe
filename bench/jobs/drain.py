"""Everything in many partitions, read through one fetch session, as a consumer with all of them assigned reads it.

The first request names all partitions, the following ones only those whose offset moved; when everything was read, a
new session begins at the start. The batches of each answer are walked by their headers, and must follow one another.
"""

from __future__ import annotations

import time

from bench.job import Figures, Specification, job_main
from bench.wire import FETCH_VERSION, Connection, RefusedError, check
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.records import HEADER_BYTES, read_header

_MAX_BYTES = 50 * 1024 * 1024
_PARTITION_BYTES = 1024 * 1024
_MAX_WAIT_MS = 500
_QUIET_ANSWERS = 20
# A broker with very many partitions may think about its first answer for a while.
_PATIENCE_SECONDS = 180.0


class Session:
    """One pass over all partitions."""

    def __init__(self, connection: Connection, topic_ids: dict[bytes, int]) -> None:
        self._connection = connection
        self._offsets = {topic_id: dict.fromkeys(range(count), 0) for topic_id, count in topic_ids.items()}
        self._moved = {topic_id: dict(offsets) for topic_id, offsets in self._offsets.items()}
        self._session_id = self._epoch = 0

    def fetch(self) -> int:
        """Ask once; answers the bytes of whole batches that came."""
        topics = [
            FetchTopic(
                topic_id=topic_id,
                partitions=[
                    FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=_PARTITION_BYTES)
                    for partition, offset in offsets.items()
                ],
            )
            for topic_id, offsets in self._moved.items()
        ]
        request = FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=topics,
        )
        response = self._connection.call(request, FETCH_VERSION)
        check(response.error_code, "fetching in a session")
        self._session_id, self._epoch = response.session_id, self._epoch + 1
        return self._take(response)

    def _take(self, response: FetchResponse) -> int:
        self._moved = {}
        received = 0
        for topic in response.responses:
            topic_id = bytes(topic.topic_id)
            offsets = self._offsets[topic_id]
            for data in topic.partitions:
                check(data.error_code, f"fetching partition {data.partition_index}")
                if data.records:
                    offset, size = _walk(data.records, offsets[data.partition_index])
                    offsets[data.partition_index] = offset
                    self._moved.setdefault(topic_id, {})[data.partition_index] = offset
                    received += size
        return received


def _walk(records: memoryview, offset: int) -> tuple[int, int]:
    """The offset after the last whole batch, and the bytes up to there."""
    position = 0
    while position + HEADER_BYTES <= len(records):
        header = read_header(records, position)
        if position + header.size_bytes > len(records):
            break
        if header.base_offset != offset:
            raise RefusedError(f"expected a batch at offset {offset}, got {header.base_offset}")
        offset = header.last_offset + 1
        position += header.size_bytes
    return offset, position


def drain(connection: Connection, topic_ids: dict[bytes, int], total_bytes: int) -> int:
    """One pass; answers how many requests it took."""
    session = Session(connection, topic_ids)
    received = requests = quiet = 0
    while received < total_bytes:
        size = session.fetch()
        received += size
        requests += 1
        quiet = 0 if size else quiet + 1
        if quiet > _QUIET_ANSWERS:
            raise RefusedError(f"expected {total_bytes} bytes, nothing came after {received}")
    if received > total_bytes:
        raise RefusedError(f"expected {total_bytes} bytes, {received} came")
    return requests


def work(specification: Specification) -> Figures:
    topic_ids = {bytes.fromhex(topic_id): count for topic_id, count in specification["topic_ids"].items()}
    total_bytes = int(specification["total_bytes"])
    with Connection(int(specification["port"]), timeout_seconds=_PATIENCE_SECONDS) as connection:
        drain(connection, topic_ids, total_bytes)
        passes = requests = 0
        started = time.perf_counter()
        while (seconds := time.perf_counter() - started) < specification["seconds"] or not passes:
            requests += drain(connection, topic_ids, total_bytes)
            passes += 1
    return {
        "passes": passes,
        "seconds": seconds,
        "requests_per_second": requests / seconds,
        "bytes_per_second": passes * total_bytes / seconds,
    }


if __name__ == "__main__":
    job_main(work)
