"""A frame costs at most 40 times its size, however it is filled.

For every array of every message the dearest element is built: of all ways to fill each field, the one that takes the
most memory for its bytes on the wire. Frames full of those are decoded under tracemalloc.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from tests.property.protocol.samples import ALL_MESSAGES

from ottla.protocol.decoder import minimum_size
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.message import Message
from ottla.protocol.schema import StructType

LIMIT = 40
FIXED_BYTES = 8 * 1024
"""For the message object, the exception, its text and its traceback: what does not grow with the frame."""
FRAME_BYTES = 1500
"""About the size of the frames: long enough for the elements to outweigh what is fixed."""
LENGTH_BYTES = 1

# What one element of each type takes in memory and on the wire: small, but not so small that Python shares the object.
DEAREST: dict[str, tuple[Any, int, int]] = {
    "int8": (-100, 28, 1),
    "int16": (-1000, 28, 2),
    "uint16": (1000, 28, 2),
    "int32": (-1000, 28, 4),
    "int64": (1 << 62, 36, 8),
    "float64": (1.5, 24, 8),
    "bool": (True, 0, 1),
    "uuid": (b"x" * 16, 49, 16),
    "string": ("\u0101", 76, 2 + LENGTH_BYTES),
    "bytes": (b"xy", 35, 2 + LENGTH_BYTES),
    "records": (memoryview(b"x"), 184, 1 + LENGTH_BYTES),
}
LIST_BYTES = 56 + 8
OBJECT_BYTES = 32
EMPTY: dict[str, Any] = {"string": "", "bytes": b"", "records": memoryview(b"")}


def dearest(kind: Any, version: int, ratio: int) -> tuple[Any, float]:
    """The dearest value of a type, and by how much it takes more than `ratio` times its bytes."""
    if not isinstance(kind, StructType):
        value, memory, wire = DEAREST[kind.name]
        return value, memory - ratio * wire
    values: dict[str, Any] = {}
    excess = float(OBJECT_BYTES + 8 * (len(kind.FIELDS) + 1) - ratio)
    for one in kind.FIELDS:
        if version not in one.versions or one.tag is not None:
            continue
        value, more = dearest(one.type, version, ratio)
        if one.is_array:
            filled = more + LIST_BYTES
            values[one.name] = [value] if filled > 0 else []
            excess += max(filled, 0) - ratio * LENGTH_BYTES
        elif not isinstance(one.type, StructType) and one.type.name in EMPTY and more < -ratio * LENGTH_BYTES:
            values[one.name] = EMPTY[one.type.name]
            excess -= ratio * LENGTH_BYTES
        else:
            values[one.name] = value
            excess += more
    return kind(**values), excess


def bloated(cls: StructType, version: int, ratio: int) -> Iterator[tuple[str, Any]]:
    """For each array within `cls`, at any depth: a struct in which that array is long and dear."""
    for one in cls.FIELDS:
        if version not in one.versions:
            continue
        if one.is_array:
            item, _ = dearest(cls, version, ratio)
            element, _ = dearest(one.type, version, ratio)
            smallest = minimum_size(one.type, version, True) if isinstance(one.type, StructType) else 1
            setattr(item, one.name, [element] * max(20, FRAME_BYTES // (2 * smallest)))
            yield one.name, item
        if isinstance(one.type, StructType):
            for path, inner in bloated(one.type, version, ratio):
                item, _ = dearest(cls, version, ratio)
                setattr(item, one.name, [inner] if one.is_array else inner)
                yield f"{one.name}.{path}", item


def some_versions(cls: type[Message]) -> list[int]:
    return sorted({cls.MIN_VERSION, max(cls.MIN_VERSION, cls.FLEXIBLE_SINCE or 0), cls.MAX_VERSION})


def peak_of(decode: Callable[[], object], allowed: int) -> int:
    """The memory that decoding takes at its worst; the codec is compiled before.

    Whatever the process allocates meanwhile is counted too: a finalizer that the collector runs, a thread that another
    test left behind. So nothing is collected, and what is above `allowed` has to be so every time.
    """
    decode()
    collecting = gc.isenabled()
    gc.disable()
    try:
        peak = _peak_once(decode)
        for _ in range(2):
            if peak > allowed:
                peak = min(peak, _peak_once(decode))
        return peak
    finally:
        if collecting:
            gc.enable()


def _peak_once(decode: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        decode()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)
def test_the_dearest_elements_stay_below_the_limit(cls: type[Message]) -> None:
    for version in some_versions(cls):
        for path, message in bloated(cls, version, 30):
            data = message.encode(version)
            allowed = LIMIT * len(data) + FIXED_BYTES
            peak = peak_of(partial(cls.decode, data, version), allowed)
            assert peak <= allowed, f"v{version} {path}: {peak / len(data):.1f} times"


@pytest.mark.parametrize("hostile", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f", b"\x00\x0f\x42\x40"])
def test_counts_that_promise_too_much_allocate_nothing(hostile: bytes) -> None:
    """A huge count or length at any place of a message, in all of them."""
    for cls in ALL_MESSAGES:
        version = cls.MAX_VERSION
        message = dearest(cls, version, 10)[0]
        data = message.encode(version)
        for place in range(min(len(data), 60)):
            damaged = data[:place] + hostile + data[place + len(hostile) :]

            def decode(cls: type[Message] = cls, damaged: bytes = damaged, version: int = version) -> None:
                with suppress(MalformedMessage):
                    cls.decode(damaged, version)

            allowed = LIMIT * len(damaged) + FIXED_BYTES
            assert peak_of(decode, allowed) <= allowed, (cls, place)
