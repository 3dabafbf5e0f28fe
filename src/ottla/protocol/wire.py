"""What the compiled codecs call where the straight line ends: long varints, unknown tags, refusals.

The compiled code handles the common case of each in place (a varint of one byte, no tagged fields); all that is here is
rare, or raises.
"""

from typing import Any, NoReturn

from ottla.protocol.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion

Buffer = bytes | bytearray | memoryview

MAX_STRING_BYTES = 0x7FFF
ONE_BYTE = tuple(bytes([value]) for value in range(128))
SIGNED = (*range(128), *range(-128, 0))
"""The int8 that each byte stands for: shared numbers, where `struct` would create one for each byte."""


class _NoItems(list[Any]):
    """An empty list that stays empty."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("empty arrays of decoded messages are shared: assign a list of your own instead")

    append = extend = insert = __iadd__ = __setitem__ = _refuse


NO_ITEMS = _NoItems()
NO_RECORDS = memoryview(b"")


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits, and the position behind it."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise MalformedMessage(f"a varint that ends at byte {position} does not fit into 32 bits")


def varint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    if value < 0x80:
        return ONE_BYTE[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def string_varint(length_plus_one: int) -> bytes:
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise UnencodableMessage(f"a string has at most {MAX_STRING_BYTES} bytes, this one {length_plus_one - 1}")
    return varint(length_plus_one)


def skip_tags(buffer: Buffer, position: int, end: int) -> int:
    """Step over a section of tagged fields none of which is known here."""
    count, position = read_varint(buffer, position)
    for _ in range(count):
        _, _, position = read_tag(buffer, position, end)
    return position


def read_tag(buffer: Buffer, position: int, end: int) -> tuple[int, int, int]:
    """The head of one tagged field: its tag, where its value starts and where the value must end.

    Tags should ascend, but Kafka takes them in any order, and of one that comes twice the last.
    """
    tag, position = read_varint(buffer, position)
    size, position = read_varint(buffer, position)
    stop = position + size
    if stop > end:
        raise overrun(f"tagged field {tag}", size, end - position)
    return tag, position, stop


def overrun(name: str, needed: int, left: int) -> MalformedMessage:
    return MalformedMessage(f"{name} needs {needed} bytes, {left} are left")


def too_many(name: str, count: int, left: int) -> MalformedMessage:
    return MalformedMessage(f"{name} announces {count} elements, {left} bytes are left for them")


def null_refused(name: str) -> MalformedMessage:
    return MalformedMessage(f"{name} is null, which this version does not allow")


def string_too_long(name: str, length: int) -> MalformedMessage:
    return MalformedMessage(f"{name} announces {length} bytes, a string has at most {MAX_STRING_BYTES}")


def tag_size_differs(name: str, announced_end: int, position: int) -> MalformedMessage:
    return MalformedMessage(f"tagged field {name} ends at byte {position}, it announced byte {announced_end}")


def trailing(position: int, end: int) -> MalformedMessage:
    return MalformedMessage(f"the message ends at byte {position}, but {end - position} more bytes follow")


def null_unencodable(name: str) -> UnencodableMessage:
    return UnencodableMessage(f"{name} is None, which this version does not allow")


def not_a_uuid(name: str, value: object) -> UnencodableMessage:
    return UnencodableMessage(f"{name} must be 16 bytes, not {value!r}")


def field_missing(name: str, version: int, value: object) -> UnsupportedVersion:
    return UnsupportedVersion(f"{name} is {value!r}, but version {version} has no such field")
