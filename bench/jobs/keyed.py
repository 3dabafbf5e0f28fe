"""Records with keys, for logs that are to be compacted: made once into a file of batches, then sent from it.

Keys are drawn at random, each as likely as any other, so that of an old batch few records stay and of a new one many.
The seed is fixed: all brokers and all rounds get the same bytes.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy
import pyarrow

from bench.batches import RECORD_BYTES
from bench.job import Figures, Specification, job_main
from bench.wire import Connection, RefusedError, check, end_offset, produce_answer, produce_request
from ottla.records import assign_offset, from_arrow, scan_headers

_BATCH_BYTES = 64 * 1024
_OVERHEAD_BYTES = 10
_WINDOW = 8
_ROWS_AT_ONCE = 500_000
_TIMESTAMP_MS = 1_750_000_000_000


def make(path: Path, total_bytes: int, keys: int) -> Figures:
    """Write about `total_bytes` of batches one after the other."""
    random = numpy.random.default_rng(20)
    rows_left = total_bytes // (RECORD_BYTES + len(_key(0)) + _OVERHEAD_BYTES)
    names = pyarrow.array([_key(number) for number in range(keys)], pyarrow.binary())
    batches = 0
    with path.open("wb") as file:
        while rows_left > 0:
            rows = min(rows_left, _ROWS_AT_ONCE)
            rows_left -= rows
            values = pyarrow.FixedSizeBinaryArray.from_buffers(
                pyarrow.binary(RECORD_BYTES), rows, [None, pyarrow.py_buffer(random.bytes(rows * RECORD_BYTES))]
            )
            table = pyarrow.table(
                {
                    "key": names.take(pyarrow.array(random.integers(0, keys, rows))),
                    "value": values.cast(pyarrow.binary()),
                }
            )
            for batch in from_arrow(table, max_batch_bytes=_BATCH_BYTES, timestamp=_TIMESTAMP_MS):
                sendable = bytearray(batch)
                assign_offset(sendable, 0, 0, -1)
                file.write(sendable)
                batches += 1
    return {"batches": batches, "bytes": path.stat().st_size}


def _key(number: int) -> bytes:
    return b"key-%012d" % number


def fill(path: Path, port: int, topic: str) -> Figures:
    """Send the batches of the file to partition 0, a few at a time; every answer is looked at."""
    content = memoryview(path.read_bytes())
    records = sent = answered = position = 0
    with Connection(port) as connection:
        for header in scan_headers(content):
            batch = content[position : position + header.size_bytes].tobytes()
            connection.socket.sendall(produce_request(topic, 0, batch, sent))
            position += header.size_bytes
            records += header.record_count
            sent += 1
            if sent - answered == _WINDOW:
                _take(connection, answered)
                answered += 1
        while answered < sent:
            _take(connection, answered)
            answered += 1
        found = end_offset(connection, topic, 0)
    if found != records:
        raise RefusedError(f"expected {records} records in {topic}, the log ends at {found}")
    return {"records": records, "bytes": position}


def _take(connection: Connection, correlation_id: int) -> None:
    frame = connection.receive()
    if struct.unpack_from(">i", frame, 4)[0] != correlation_id:
        raise RefusedError("answers came in another order than requests")
    check(produce_answer(frame).error_code, "producing")


def work(specification: Specification) -> Figures:
    path = Path(specification["path"])
    match specification["what"]:
        case "make":
            return make(path, specification["total_bytes"], specification["keys"])
        case "fill":
            return fill(path, specification["port"], specification["topic"])
        case other:
            raise ValueError(f"expected make or fill, got {other}")


if __name__ == "__main__":
    job_main(work)
