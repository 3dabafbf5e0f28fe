"""The plain twin of the compiled codec: it walks the declaration field by field, slowly, with nothing clever in it.

It reads and writes the same bytes and refuses the same ones; parity tests hold the compiled codec to that.
"""

from __future__ import annotations

import struct
from typing import Any

from ottla.protocol.errors import MalformedMessage, UnsupportedVersion
from ottla.protocol.message import Message
from ottla.protocol.schema import BOOL, BYTES, RECORDS, STRING, Field, StructType


def plain_decode(cls: type[Message], data: bytes, version: int) -> Any:
    reader = _Reader(data, version, cls.is_flexible(version))
    message = reader.struct(cls)
    if reader.position != len(data):
        raise MalformedMessage("bytes are left")
    return message


def plain_encode(message: Message, version: int) -> bytes:
    writer = _Writer(version, message.is_flexible(version))
    writer.struct(message)
    return bytes(writer.out)


class _Reader:
    def __init__(self, data: bytes, version: int, flexible: bool) -> None:
        self.data = data
        self.version = version
        self.flexible = flexible
        self.position = 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.position:
            raise MalformedMessage("truncated")
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self, code: str) -> Any:
        (value,) = struct.unpack(">" + code, self.take(struct.calcsize(code)))
        return value

    def varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte: int = self.number("B")
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                if value >= 1 << 32:
                    break
                return value
        raise MalformedMessage("varint")

    def length(self, code: str) -> int:
        """A length or count; negative for null."""
        return self.varint() - 1 if self.flexible else int(self.number(code))

    def struct(self, cls: StructType) -> Any:
        values = {}
        present = [one for one in cls.FIELDS if self.version in one.versions]
        for one in present:
            if one.tag is None:
                values[one.name] = self.field(one)
        if self.flexible:
            tagged = {one.tag: one for one in present if one.tag is not None}
            previous = -1
            for _ in range(self.varint()):
                tag, size = self.varint(), self.varint()
                if tag <= previous:
                    raise MalformedMessage("order of tags")
                previous = tag
                stop = self.position + size
                if stop > len(self.data):
                    raise MalformedMessage("truncated")
                if tag in tagged:
                    values[tagged[tag].name] = self.field(tagged[tag])
                    if self.position != stop:
                        raise MalformedMessage("size of tag")
                self.position = stop
        return cls(**values)

    def field(self, one: Field) -> Any:
        nullable = one.nullable_in(self.version)
        if one.is_array:
            count = self.length("i")
            if count < 0:
                return self.null(nullable)
            if count > len(self.data) - self.position:
                raise MalformedMessage("count")
            return [self.value(one.type, False) for _ in range(count)]
        if isinstance(one.type, StructType) and nullable and self.number("b") < 0:
            return None
        return self.value(one.type, nullable)

    def null(self, nullable: bool) -> None:
        if not nullable:
            raise MalformedMessage("null")

    def value(self, kind: Any, nullable: bool) -> Any:
        if isinstance(kind, StructType):
            return self.struct(kind)
        if kind.code:
            return self.number(kind.code)
        length = self.length("h" if kind is STRING else "i")
        if length < 0:
            return self.null(nullable)
        if kind is STRING and length > 0x7FFF:
            raise MalformedMessage("string")
        data = self.take(length)
        if kind is RECORDS:
            return memoryview(data)
        if kind is BYTES:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise MalformedMessage("utf-8") from error


class _Writer:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.out = bytearray()

    def varint(self, value: int) -> None:
        while value >= 0x80:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)

    def length(self, code: str, value: int) -> None:
        if self.flexible:
            self.varint(value + 1)
        else:
            self.out += struct.pack(">" + code, value)

    def struct(self, item: Any) -> None:
        untouched = type(item)()
        tagged = []
        for one in item.FIELDS:
            value = getattr(item, one.name)
            if self.version not in one.versions:
                if not one.ignorable and value != getattr(untouched, one.name):
                    raise UnsupportedVersion(one.name)
            elif one.tag is None:
                self.field(one, value)
            elif value != getattr(untouched, one.name):
                tagged.append((one.tag, one, value))
        if self.flexible:
            self.varint(len(tagged))
            for tag, one, value in sorted(tagged, key=lambda entry: entry[0]):
                inner = _Writer(self.version, True)
                inner.field(one, value)
                self.varint(tag)
                self.varint(len(inner.out))
                self.out += inner.out

    def field(self, one: Field, value: Any) -> None:
        if one.is_array:
            self.length("i", -1 if value is None else len(value))
            for item in value or ():
                self.value(one.type, item)
        elif isinstance(one.type, StructType) and one.nullable_in(self.version):
            self.out += b"\xff" if value is None else b"\x01"
            if value is not None:
                self.struct(value)
        else:
            self.value(one.type, value)

    def value(self, kind: Any, value: Any) -> None:
        if isinstance(kind, StructType):
            self.struct(value)
        elif kind.code:
            self.out += struct.pack(">" + kind.code, bool(value) if kind is BOOL else value)
        elif value is None:
            self.length("h" if kind is STRING else "i", -1)
        else:
            data = value.encode() if kind is STRING else value
            self.length("h" if kind is STRING else "i", len(data))
            self.out += data
