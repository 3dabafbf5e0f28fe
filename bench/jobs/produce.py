"""Produce requests that were encoded beforehand, over one or more connections, from one process.

    chunk    a few requests joined into one buffer, sent with one call; their correlation ids are 0, 1, 2 ...
    window   how many chunks a connection has in flight; the next one leaves when the oldest is answered in full

A response to such a request always has the same size, so answers are counted by bytes. Of every one of them the
length, the correlation id and the error code are compared, column by column over a whole chunk; afterwards the log
end offset has to be exactly what was acknowledged. The kernel wakes the process only when a whole chunk is answered
(SO_RCVLOWAT), which leaves the other core to the broker.
"""

from __future__ import annotations

import math
import os
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Sequence

from bench.batches import Batch, filled, one_record
from bench.job import Figures, Specification, job_main
from bench.memory import touch
from bench.wire import Connection, RefusedError, check, end_offsets, produce_answer, produce_request

_SILENCE_SECONDS = 20.0
_MAX_CHUNK_REQUESTS = 128
_MAX_TURNS = 50_000

Target = tuple[str, int]


class Expected:
    """What the answer to one chunk looks like, learnt from one answer that was decoded and found good."""

    def __init__(self, sample: bytes, topic: str, chunk_requests: int) -> None:
        if chunk_requests > _MAX_CHUNK_REQUESTS:
            raise ValueError(
                f"correlation ids fit one byte: at most {_MAX_CHUNK_REQUESTS} requests, not {chunk_requests}"
            )
        answer = produce_answer(sample)
        check(answer.error_code, f"producing to {topic}")
        self.response_bytes = len(sample)
        self.chunk_bytes = len(sample) * chunk_requests
        # length 4, correlation id 4, tags 1, topics 1, name 1 + its bytes, partitions 1, index 4; then the error code
        self._error_at = 16 + len(topic.encode())
        if struct.unpack_from(">hq", sample, self._error_at) != (0, answer.base_offset):
            raise RefusedError("the error code and the base offset are not where version 11 of Produce has them")
        zeros = bytes(chunk_requests)
        self._columns = (
            (3, sample[3:4] * chunk_requests),
            (7, bytes(range(chunk_requests))),
            (self._error_at, zeros),
            (self._error_at + 1, zeros),
        )

    def verify(self, answers: bytearray) -> None:
        for column, wanted in self._columns:
            if answers[column :: self.response_bytes] != wanted:
                codes = [
                    struct.unpack_from(">h", answers, position + self._error_at)[0]
                    for position in range(0, self.chunk_bytes, self.response_bytes)
                ]
                raise RefusedError(f"an answer differs in byte {column}; error codes of the chunk: {codes}")


class Lane:
    """One connection with its window of chunks. The requests of its chunks go to `targets` in turn, again and again."""

    def __init__(self, port: int, targets: Sequence[Target], batch: Batch, shape: Specification) -> None:
        self.chunk_requests = int(shape["chunk_requests"])
        self.window_chunks = int(shape["window_chunks"])
        self._places = _chunked(targets, self.chunk_requests)
        first_topic, first_partition = self._places[0][0]
        self._primed = (first_topic, first_partition)
        sample = produce_request(first_topic, first_partition, batch.data, 0)
        self.request_bytes = len(sample)
        self.primed, answer = _prime(port, sample)
        self.expected = Expected(answer, first_topic, self.chunk_requests)
        self._chunks = [memoryview(_chunk(places, batch)) for places in self._places]
        self._next = 0
        self._rest: memoryview | None = None
        self.socket = self.primed.socket
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, self.expected.chunk_bytes)
        self.answers = bytearray(self.expected.chunk_bytes)
        self.view = memoryview(self.answers)
        self.position = 0
        self.in_flight = 0
        self.answered_chunks = 0
        self.stopping = False

    @property
    def done(self) -> bool:
        return self.stopping and self.in_flight == 0 and self._rest is None

    def batches(self) -> Counter[Target]:
        """How many batches each target has acknowledged, the one that opened the connection included."""
        counted = Counter([self._primed])
        whole, rest = divmod(self.answered_chunks, len(self._places))
        for number, places in enumerate(self._places):
            for place in places:
                counted[place] += whole + (number < rest)
        return counted

    def send(self) -> bool:
        """Fill the window; True when the socket takes no more for now. A chunk that was begun is always finished."""
        while self.in_flight < self.window_chunks and not (self.stopping and self._rest is None):
            rest = self._chunks[self._next] if self._rest is None else self._rest
            try:
                sent = self.socket.send(rest)
            except BlockingIOError:
                return True
            if sent == len(rest):
                self.in_flight += 1
                self._rest = None
                self._next = (self._next + 1) % len(self._chunks)
            else:
                self._rest = rest[sent:]
        return False

    def receive(self) -> bool:
        """Whether this was the end of the answers to a chunk."""
        try:
            size = self.socket.recv_into(self.view[self.position :])
        except BlockingIOError:
            return False
        if size == 0:
            raise RefusedError("the broker closed the connection")
        self.position += size
        missing = len(self.answers) - self.position
        if missing:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, missing)
            return False
        if size != len(self.answers):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(self.answers))
        self.expected.verify(self.answers)
        self.position = 0
        self.in_flight -= 1
        self.answered_chunks += 1
        return True


def _chunked(targets: Sequence[Target], size: int) -> list[list[Target]]:
    """All targets in turn, cut into whole chunks; the fewest chunks after which all had the same number of turns."""
    turns = math.lcm(len(targets), size)
    if turns > _MAX_TURNS:
        turns = -(-len(targets) // size) * size
    places = [targets[turn % len(targets)] for turn in range(turns)]
    return [places[start : start + size] for start in range(0, turns, size)]


def _chunk(places: Sequence[Target], batch: Batch) -> bytes:
    requests = [
        produce_request(topic, partition, batch.data, number) for number, (topic, partition) in enumerate(places)
    ]
    return b"".join(requests)


def _prime(port: int, request: bytes) -> tuple[Connection, bytes]:
    """One request by itself: opens the connection and shows what an answer looks like."""
    connection = Connection(port)
    return connection, connection.exchange(request)


def drive(lanes: list[Lane], warm_seconds: float, seconds: float, limit_bytes: int, until: str = "") -> Figures:
    """Keep every window full; count what is answered between the end of the warm-up and the end of the time.

    The time ends early when there is a file `until`.
    """
    by_descriptor = {lane.socket.fileno(): lane for lane in lanes}
    poll = select.epoll()
    blocked = dict.fromkeys(by_descriptor, False)
    for descriptor in by_descriptor:
        poll.register(descriptor, select.EPOLLIN)
    limit_requests = max(1, limit_bytes // lanes[0].request_bytes)
    chunk_requests = lanes[0].chunk_requests
    answered_at_start, started = (0, time.perf_counter()) if warm_seconds == 0 else (-1, 0.0)
    warm_until = time.perf_counter() + warm_seconds
    answered = answered_at_end = 0
    ended = 0.0
    descriptors = list(by_descriptor)
    while not (ended and all(lane.done for lane in lanes)):
        for descriptor in descriptors:
            lane = by_descriptor[descriptor]
            now_blocked = lane.send()
            if now_blocked != blocked[descriptor]:
                blocked[descriptor] = now_blocked
                poll.modify(descriptor, select.EPOLLIN | (select.EPOLLOUT if now_blocked else 0))
        events = poll.poll(_SILENCE_SECONDS)
        if not events and not all(lane.done for lane in lanes):
            raise RefusedError(f"no answer for {_SILENCE_SECONDS} s")
        for descriptor, event in events:
            if event & ~select.EPOLLOUT and by_descriptor[descriptor].receive():
                answered += chunk_requests
        descriptors = [descriptor for descriptor, _ in events]
        now = time.perf_counter()
        if answered_at_start < 0:
            if now >= warm_until:
                answered_at_start, started = answered, now
        elif not ended and (
            now - started >= seconds
            or answered - answered_at_start >= limit_requests
            or (until and os.path.exists(until))
        ):
            answered_at_end, ended = answered, now
            for lane in lanes:
                lane.stopping = True
            descriptors = list(by_descriptor)
    poll.close()
    requests, elapsed = answered_at_end - answered_at_start, ended - started
    return {"requests": requests, "seconds": elapsed, "requests_per_second": requests / elapsed}


def targets_of(specification: Specification) -> list[Target]:
    """`topics` maps names to numbers of partitions; without it there is one partition per connection of `topic`."""
    topics = specification.get("topics") or {specification["topic"]: specification["connections"]}
    return [(topic, partition) for topic, partitions in topics.items() for partition in range(partitions)]


def work(specification: Specification) -> Figures:
    """Drive the partitions, shared out among the connections, and compare the ends of the logs with what was
    acknowledged."""
    port, connections = int(specification["port"]), int(specification["connections"])
    batch = filled(specification["batch_bytes"]) if specification["batch_bytes"] else one_record()
    targets = targets_of(specification)
    lanes = [
        Lane(port, targets[number % len(targets) :: connections], batch, specification) for number in range(connections)
    ]
    touch(int(specification.get("touch_bytes", 0)))
    cpu_at_start, at_start = time.process_time(), time.perf_counter()
    figures = drive(
        lanes,
        specification["warm_seconds"],
        specification["seconds"],
        int(specification["limit_bytes"]),
        specification.get("until", ""),
    )
    figures["driver_cpu"] = (time.process_time() - cpu_at_start) / (time.perf_counter() - at_start)
    figures["request_bytes"] = lanes[0].request_bytes
    figures["records_per_batch"] = batch.record_count
    acknowledged: Counter[Target] = Counter()
    for lane in lanes:
        lane.primed.close()
        acknowledged += lane.batches()
    figures["batches"] = acknowledged.total()
    figures["first_end_offset"] = acknowledged[targets[0]] * batch.record_count
    if specification["verify"]:
        verify_ends(port, acknowledged, batch.record_count)
    return figures


def verify_ends(port: int, acknowledged: Counter[Target], records_per_batch: int) -> None:
    """Every log must end exactly where the acknowledgements say."""
    by_topic: dict[str, dict[int, int]] = {}
    for (topic, partition), batches in acknowledged.items():
        by_topic.setdefault(topic, {})[partition] = batches * records_per_batch
    with Connection(port) as connection:
        for topic, expected in by_topic.items():
            for partition, found in end_offsets(connection, topic, expected).items():
                if found != expected[partition]:
                    raise RefusedError(
                        f"expected {expected[partition]} records in {topic}-{partition}, the log ends at {found}"
                    )


if __name__ == "__main__":
    job_main(work)
