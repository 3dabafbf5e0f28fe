"""Walking the batches of a file from a known beginning.

Runs off the loop: in recovery, in index rebuilding and in searches by time.
"""

from collections.abc import Iterator

from ottla.records import HEADER_BYTES, BatchHeader, check_crc, inspect_batches, read_header, scan_headers
from ottla.records.errors import CorruptRecord
from ottla.runtime import File

CHUNK_BYTES = 1024 * 1024


def scan_batches(file: File, position: int, end: int, *, verify: bool) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch from `position` on.

    Stops in front of the first bytes that are no batch, or, with `verify`, whose CRC is wrong; the caller sees it
    by comparing where the last batch ended with `end`.
    """
    while position < end:
        chunk = file.read_at(position, min(CHUNK_BYTES, end - position))
        headers = _headers(chunk, verify)
        if not headers:
            chunk = _read_large_batch(file, position, end, chunk)
            headers = _headers(chunk, verify)
            if not headers:
                return
        size = len(chunk)
        chunk_start = position
        for header in headers:
            yield position, header
            position += header.size_bytes
        if _stops_inside(chunk, position - chunk_start, size):
            return


def _headers(chunk: bytes, verify: bool) -> list[BatchHeader]:
    try:
        if verify:
            return inspect_batches(chunk, ignore_partial_tail=True)
        return scan_headers(chunk, ignore_partial_tail=True)
    except CorruptRecord:
        return _headers_one_by_one(chunk, verify)


def _headers_one_by_one(chunk: bytes, verify: bool) -> list[BatchHeader]:
    """The good batches in front of a bad one."""
    headers: list[BatchHeader] = []
    position = 0
    while position + HEADER_BYTES <= len(chunk):
        try:
            header = read_header(chunk, position)
        except CorruptRecord:
            break
        if position + header.size_bytes > len(chunk) or (verify and not check_crc(chunk, position, header)):
            break
        headers.append(header)
        position += header.size_bytes
    return headers


def _read_large_batch(file: File, position: int, end: int, chunk: bytes) -> bytes:
    """The whole of a batch that is larger than a chunk; nothing when it is not all there."""
    try:
        size_bytes = read_header(chunk).size_bytes
    except CorruptRecord:
        return b""
    if size_bytes <= len(chunk) or position + size_bytes > end:
        return b""
    return file.read_at(position, size_bytes)


def _stops_inside(chunk: bytes, used: int, size: int) -> bool:
    """Whether a whole batch would have fitted after the last good one: then that one is bad."""
    if size - used < HEADER_BYTES:
        return False
    try:
        return read_header(chunk, used).size_bytes <= size - used
    except CorruptRecord:
        return True
