"""Ways to spoil a request. Each takes frames with their length prefix and gives back bytes to send."""

import random
import struct
from collections.abc import Callable

HOSTILE_LENGTHS = (0x7FFFFFFF, -1, -0x80000000, 0x7FFFFFF0, 100_000_000, 0, 1, 65_535, 0x01010101)
HOSTILE_VARINTS = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x00",
    b"\x80",
)
PREFIX_BYTES = 4

Mutation = Callable[[random.Random, bytes, bytes], bytes]


def reframed(content: bytes) -> bytes:
    """With a length prefix that fits, so that the fault lies inside."""
    return struct.pack(">i", len(content)) + content


def flip_bits(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    content = bytearray(frame[PREFIX_BYTES:])
    for _ in range(dice.choice((1, 1, 1, 2, 8))):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return reframed(bytes(content))


def cut(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    return reframed(frame[PREFIX_BYTES : dice.randint(PREFIX_BYTES, len(frame))])


def extend(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    return reframed(frame[PREFIX_BYTES:] + dice.randbytes(dice.randint(1, 100)))


def splice(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    head = frame[PREFIX_BYTES : dice.randint(PREFIX_BYTES, len(frame))]
    return reframed(head + other[dice.randint(PREFIX_BYTES, len(other)) :])


def hostile_length_inside(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    content = bytearray(frame[PREFIX_BYTES:])
    position = dice.randrange(len(content))
    size = dice.choice((2, 4))
    hostile = struct.pack(">i", dice.choice(HOSTILE_LENGTHS))[-size:]
    content[position : position + size] = hostile
    return reframed(bytes(content))


def hostile_varint_inside(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    content = frame[PREFIX_BYTES:]
    position = dice.randrange(len(content))
    return reframed(content[:position] + dice.choice(HOSTILE_VARINTS) + content[position + 1 :])


def hostile_prefix(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    return struct.pack(">i", dice.choice(HOSTILE_LENGTHS)) + frame[PREFIX_BYTES:]


def wrong_prefix(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    """A few bytes more or less than announced: what follows is cut at the wrong place."""
    size = max(0, len(frame) - PREFIX_BYTES + dice.randint(-20, 20))
    return struct.pack(">i", size) + frame[PREFIX_BYTES:]


def other_header(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    """The body of one API under the key or version of another."""
    own_key = int.from_bytes(frame[PREFIX_BYTES : PREFIX_BYTES + 2], "big", signed=True)
    key = dice.choice((dice.randint(-2, 100), own_key))
    return reframed(struct.pack(">hh", key, dice.randint(-1, 20)) + frame[PREFIX_BYTES + 4 :])


def noise(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    return dice.randbytes(dice.randint(1, 300))


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    flip_bits,
    flip_bits,
    cut,
    extend,
    splice,
    hostile_length_inside,
    hostile_length_inside,
    hostile_varint_inside,
    hostile_prefix,
    wrong_prefix,
    other_header,
    noise,
)


def mutate(dice: random.Random, frame: bytes, other: bytes) -> bytes:
    return dice.choice(MUTATIONS)(dice, frame, other)
