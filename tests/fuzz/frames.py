"""The requests of one connection as the mutations see them: frames, and the fields that the messages declare."""

import random
import struct
from typing import Any

from tests.fuzz.generator import RequestMaker
from tests.fuzz.mutations import mutate as spoil

from ottla.protocol.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from ottla.protocol.framing import decode_request_header, encode_request
from ottla.protocol.message import Request
from ottla.protocol.registry import request_class
from ottla.protocol.schema import Field, Struct, StructType
from ottla.records import crc32c

PREFIX_BYTES = 4
MOST_FRAMES = 12
LONGEST_ARRAY = 4
# Where a batch says how long it is, which format it has, and what its CRC covers.
BATCH_MAGIC_BYTE, BATCH_CRC, BATCH_COVERED, BATCH_HEADER_BYTES = 16, 17, 21, 61

Place = tuple[Any, Field]


def split(data: bytes) -> list[bytes]:
    """Whole frames with their prefixes; what is left over, or announced too long, is the last one."""
    frames: list[bytes] = []
    position = 0
    while len(data) - position >= PREFIX_BYTES:
        (size,) = struct.unpack_from(">i", data, position)
        end = position + PREFIX_BYTES + size
        if size < 0 or end > len(data):
            break
        frames.append(data[position:end])
        position = end
    return [*frames, data[position:]] if position < len(data) else frames


def decode(frame: bytes) -> tuple[Request, int, int, str | None] | None:
    """The request, its version, correlation id and client, if that is what the frame holds."""
    try:
        header, position = decode_request_header(memoryview(frame)[PREFIX_BYTES:])
        cls = request_class(header.api_key)
        if cls is None or not cls.MIN_VERSION <= header.api_version <= cls.MAX_VERSION:
            return None
        request = cls.decode(memoryview(frame)[PREFIX_BYTES:], header.api_version, position, exact=False)
    except MalformedMessage:
        return None
    return request, header.api_version, header.correlation_id, header.client_id


def places(struct_: Struct, version: int) -> list[Place]:
    """Every field of a message and of what is nested in it, with the object that has it."""
    found: list[Place] = []
    for field in struct_.FIELDS:
        if version not in field.versions:
            continue
        found.append((struct_, field))
        if isinstance(field.type, StructType):
            value = getattr(struct_, field.name)
            for part in value if field.is_array and value else [value]:
                if isinstance(part, Struct):
                    found += places(part, version)
    return found


class FrameMutator:
    """Changes sequences of requests: whole requests, single fields by their declarations, batches inside of them."""

    def __init__(self, dice: random.Random, maker: RequestMaker) -> None:
        self._dice = dice
        self._maker = maker

    def mutate(self, data: bytes, other: bytes) -> bytes:
        dice = self._dice
        frames, others = split(data), split(other)
        for _ in range(dice.choice((1, 1, 2, 3))):
            self._change(frames, others)
        return b"".join(frames[:MOST_FRAMES])

    def _change(self, frames: list[bytes], others: list[bytes]) -> None:
        dice = self._dice
        chance = dice.random()
        position = dice.randrange(len(frames)) if frames else 0
        if not frames or chance < 0.12:
            frames.insert(position, self._maker.frame())
        elif chance < 0.2:
            del frames[position]
        elif chance < 0.3:
            frames.insert(dice.randint(0, len(frames)), frames[position])
        elif chance < 0.4 and others:
            start = dice.randrange(len(others))
            frames[position:position] = others[start : start + dice.randint(1, 3)]
        elif chance < 0.45:
            frames[position], frames[-1] = frames[-1], frames[position]
        elif chance < 0.55 and len(frames[position]) > PREFIX_BYTES:
            frames[position] = spoil(dice, frames[position], self._maker.frame())
        else:
            frames[position] = self._other_fields(frames[position])

    def _other_fields(self, frame: bytes) -> bytes:
        decoded = decode(frame)
        if decoded is None:
            return self._maker.frame()
        dice = self._dice
        request, version, correlation_id, client_id = decoded
        if dice.random() < 0.15:
            version = dice.randint(request.MIN_VERSION, request.MAX_VERSION)
        for _ in range(dice.choice((1, 1, 1, 2, 4))):
            found = places(request, version)
            if found:
                self._set(*dice.choice(found), version)
        try:
            return encode_request(request, version, correlation_id, client_id)
        except (UnencodableMessage, UnsupportedVersion):
            return frame

    def _set(self, owner: Any, field: Field, version: int) -> None:
        dice = self._dice
        value = getattr(owner, field.name)
        if field.is_array and value and dice.random() < 0.6:
            changed = list(value)
            spot = dice.randrange(len(changed))
            if dice.random() < 0.5 and len(changed) < LONGEST_ARRAY:
                changed.insert(spot, dice.choice(changed))
            elif dice.random() < 0.5:
                del changed[spot]
            else:
                changed[spot] = self._maker.single(field, version)
            setattr(owner, field.name, changed)
        elif getattr(field.type, "name", "") == "records" and value is not None and len(value) > BATCH_HEADER_BYTES:
            setattr(owner, field.name, batch_with_changes(dice, bytes(value)))
        else:
            setattr(owner, field.name, self._maker.value(field, version))


def batch_with_changes(dice: random.Random, batch: bytes) -> bytes:
    """Some bytes of a batch changed, mostly with the CRC set right again, so that what is behind it is reached."""
    changed = bytearray(batch)
    for _ in range(dice.choice((1, 1, 2, 4))):
        spot = dice.randrange(BATCH_HEADER_BYTES) if dice.random() < 0.6 else dice.randrange(len(changed))
        changed[spot] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.getrandbits(8)))
    if dice.random() < 0.1:
        changed += bytes(changed)
    return with_right_crc(bytes(changed)) if dice.random() < 0.85 else bytes(changed)


def with_right_crc(batch: bytes) -> bytes:
    """The batch with its length and CRC set to what its bytes say."""
    if len(batch) < BATCH_HEADER_BYTES:
        return batch
    fixed = bytearray(batch)
    struct.pack_into(">i", fixed, 8, len(batch) - 12)
    struct.pack_into(">I", fixed, BATCH_CRC, crc32c(bytes(fixed[BATCH_COVERED:])))
    return bytes(fixed)
