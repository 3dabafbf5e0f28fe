"""Fetch requests that were encoded beforehand, over one connection, the next one when the last is answered.

The log does not change, so the answer to one request is the same every time. The first answer to each is decoded, its
batches are checked by CRC, and its first bytes are kept; from then on every answer's length and first bytes (error
codes and watermarks are among them) have to be the same. The rest is received into one buffer that stays in the
processor's cache, and nothing more: the least that any client has to do.
"""

from __future__ import annotations

import random
import socket
import statistics
import struct
import time
from dataclasses import dataclass

from bench.job import Figures, Specification, job_main
from bench.wire import Connection, RefusedError, check, fetch_answer, fetch_request
from ottla.records import check_crc, read_header

_HEAD_BYTES = 64
_SILENCE_SECONDS = 20
_SCRATCH_BYTES = 1024 * 1024


@dataclass(slots=True)
class Question:
    """One request and the start and size of its one right answer."""

    offset: int
    request: bytes
    head: bytes = b""
    rest_bytes: int = 0


def check_answer(answer: bytes, offset: int) -> int:
    """Decode an answer and check its batches; answers the bytes of records in it."""
    data = fetch_answer(answer)
    check(data.error_code, f"fetching at offset {offset}")
    records = data.records
    if not records:
        raise RefusedError(f"nothing came for offset {offset}")
    position = 0
    while position < len(records):
        header = read_header(records, position)
        if position == 0 and not header.base_offset <= offset <= header.last_offset:
            raise RefusedError(
                f"expected a batch with offset {offset}, got {header.base_offset} to {header.last_offset}"
            )
        if position + header.size_bytes > len(records):
            break
        if not check_crc(records, position, header):
            raise RefusedError(f"the batch at offset {header.base_offset} does not match its CRC")
        position += header.size_bytes
    return len(records)


def wait_at_most(connection: socket.socket, seconds: int) -> None:
    """Blocking calls, so that MSG_WAITALL works, but not for ever."""
    connection.setblocking(True)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))


def repeat(connection: socket.socket, questions: list[Question], seconds: float, scratch: bytearray) -> list[float]:
    """Ask the questions over and over for `seconds`; answers what each one took, in seconds."""
    head = bytearray(_HEAD_BYTES)
    took: list[float] = []
    clock, receive, send = time.perf_counter, connection.recv_into, connection.sendall
    now = clock()
    end = now + seconds
    while now < end:
        for question in questions:
            send(question.request)
            if receive(head, _HEAD_BYTES, socket.MSG_WAITALL) != _HEAD_BYTES or head != question.head:
                raise RefusedError(f"the answer for offset {question.offset} changed: {bytes(head).hex()}")
            rest = question.rest_bytes
            while rest:
                size = receive(scratch, min(rest, _SCRATCH_BYTES), socket.MSG_WAITALL)
                if size == 0:
                    raise RefusedError("the broker closed the connection")
                rest -= size
            before, now = now, clock()
            took.append(now - before)
            if now >= end:
                break
    return took


def offsets_to_fetch(specification: Specification) -> list[int]:
    """`spread` evenly over the log, anywhere at `random`, or at the `head`: the last batches of it."""
    end, step = int(specification["end_offset"]), int(specification["offsets_per_request"])
    count = min(int(specification["positions"]), end // step)
    whole = end // step
    match specification["where"]:
        case "spread":
            return [(number * whole // count) * step for number in range(count)]
        case "random":
            chooser = random.Random(4321)
            return [chooser.randrange(whole * step) for _ in range(count)]
        case "head":
            return [(whole - count + number) * step for number in range(count)]
        case other:
            raise ValueError(f"expected spread, random or head, got {other}")


def work(specification: Specification) -> Figures:
    """Check every answer once, then time them."""
    topic_id, max_bytes = bytes.fromhex(specification["topic_id"]), int(specification["request_bytes"])
    questions = [
        Question(offset, fetch_request(topic_id, 0, offset, max_bytes, number))
        for number, offset in enumerate(offsets_to_fetch(specification))
    ]
    with Connection(int(specification["port"])) as connection:
        record_bytes = 0
        for question in questions:
            answer = connection.exchange(question.request)
            if specification["verify"]:
                record_bytes += check_answer(answer, question.offset)
            question.head, question.rest_bytes = answer[:_HEAD_BYTES], len(answer) - _HEAD_BYTES
        scratch = bytearray(_SCRATCH_BYTES)
        wait_at_most(connection.socket, _SILENCE_SECONDS)
        repeat(connection.socket, questions, specification["warm_seconds"], scratch)
        cpu_at_start = time.process_time()
        took = repeat(connection.socket, questions, specification["seconds"], scratch)
        cpu_seconds = time.process_time() - cpu_at_start
    seconds = sum(took)
    answer_bytes = statistics.fmean(question.rest_bytes + _HEAD_BYTES for question in questions)
    took.sort()
    return {
        "requests": len(took),
        "seconds": seconds,
        "requests_per_second": len(took) / seconds,
        "bytes_per_second": len(took) * answer_bytes / seconds,
        "record_bytes_per_request": record_bytes / len(questions),
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[len(took) * 99 // 100] * 1000,
        "driver_cpu": cpu_seconds / seconds,
    }


if __name__ == "__main__":
    job_main(work)
