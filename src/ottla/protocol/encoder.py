"""From a message class and a version to the function that encodes it.

The function fills a list of small pieces (`write` is its append) and joins it. Records are not joined: the result is
a list of parts in which each record set stands by itself, as the object that was given. Fields of fixed width next to
each other are packed by one call, together with the length prefix that follows them; an empty section of tagged fields
is a padding byte in such a call.

A field that the version lacks must hold its default, unless it may be ignored. A value that its type cannot carry makes
`struct` or `str` raise; `Message.encode` turns that into UnencodableMessage.
"""

import struct
from collections.abc import Callable
from typing import Any

from ottla.protocol import wire
from ottla.protocol.schema import RECORDS, STRING, UUID, Field, StructType, WireType
from ottla.protocol.source import Source

Part = Any
Encoder = Callable[[Any, bytes], list[Part]]


def compile_encoder(cls: StructType, version: int, flexible: bool) -> Encoder:
    return _EncoderWriter(cls, version, flexible).write()


class _EncoderWriter:
    """Writes the text top down; `_run` holds the fixed-width values that are not written yet."""

    def __init__(self, cls: StructType, version: int, flexible: bool) -> None:
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.source = Source(f"encode {cls.__name__} v{version}")
        self._run: list[tuple[str, str]] = []
        self._names = 0
        self._pieces = "pieces"

    def write(self) -> Encoder:
        source = self.source
        source.constants.update(pack=struct.pack, join=b"".join)
        source.constants.update((name, getattr(wire, name)) for name in _CALLED_NAMES)
        with source.block("def encode(message, head):"):
            source.line("parts = []")
            source.line("pieces = [head]")
            source.line("write = pieces.append")
            self._struct(self.cls, "message")
            self._flush()
            source.line("if pieces: parts.append(join(pieces))")
            source.line("return parts")
        return source.compile("encode")

    def _fresh(self, word: str) -> str:
        """A local name that no other struct or loop uses: pending values may still refer to the others."""
        self._names += 1
        return f"{word}{self._names}"

    def _flush(self, *last: tuple[str, str]) -> None:
        """Write the pending values, with `last` behind them, as one piece."""
        self._write_run([*self._run, *last])
        self._run = []

    def _write_run(self, run: list[tuple[str, str]]) -> None:
        if not run:
            return
        codes = "".join(code for _, code in run)
        if not codes.strip("x"):
            self.source.line(f"write({bytes(len(codes))!r})")
            return
        values = ", ".join(value for value, _ in run if value)
        name = "pack_" + codes.replace("?", "o")
        self.source.constants.setdefault(name, struct.Struct(">" + codes).pack)
        self.source.line(f"write({name}({values}))")

    def _struct(self, cls: StructType, variable: str) -> None:
        present = [one for one in cls.FIELDS if self.version in one.versions]
        for one in cls.FIELDS:
            if one not in present and not one.ignorable:
                value = f"{variable}.{one.name}"
                condition = self._differs_from_default(one, value)
                self.source.line(f"if {condition}: raise field_missing({one.name!r}, {self.version}, {value})")
        for one in present:
            if one.tag is None:
                self._field(one, f"{variable}.{one.name}")
        if self.flexible:
            tagged = sorted((one for one in present if one.tag is not None), key=lambda one: one.tag or 0)
            self._tags(tagged, variable)

    def _differs_from_default(self, one: Field, value: str) -> str:
        if not one.has_fresh_default:
            constant = self.source.constant("default_" + one.name, one.default)
            return f"{value} is not None" if one.default is None else f"{value} != {constant}"
        if one.is_array:
            return f"({value} is None or {value})" if one.nullable else value
        assert isinstance(one.type, StructType)
        inner = " or ".join(self._differs_from_default(inner, f"{value}.{inner.name}") for inner in one.type.FIELDS)
        return f"({value} is None or {inner})" if one.nullable else inner

    def _tags(self, known: list[Field], variable: str) -> None:
        if not known:
            self._run.append(("", "x"))
            return
        self._flush()
        flag, pieces, outer = self._fresh("has"), self._fresh("pieces"), self._pieces
        conditions = [self._differs_from_default(one, f"{variable}.{one.name}") for one in known]
        for one, condition in zip(known, conditions, strict=True):
            self.source.line(f"{flag}_{one.name} = {condition}")
        flags = [f"{flag}_{one.name}" for one in known]
        with self.source.block(f"if {' or '.join(flags)}:"):
            self.source.line(f"write(ONE_BYTE[{' + '.join(f'bool({flag})' for flag in flags)}])")
            for one, flag in zip(known, flags, strict=True):
                with self.source.block(f"if {flag}:"):
                    self._pieces = pieces
                    self.source.line(f"{self._pieces} = []")
                    self.source.line(f"write = {self._pieces}.append")
                    self._field(one, f"{variable}.{one.name}")
                    self._flush()
                    self._pieces = outer
                    self.source.line(f"write = {outer}.append")
                    self.source.line(f"value = join({pieces})")
                    self.source.line(f"write({wire.varint(one.tag or 0)!r} + varint(len(value)))")
                    self.source.line("write(value)")
        self.source.line('else: write(b"\\0")')

    def _field(self, one: Field, value: str) -> None:
        if one.is_array:
            self._array(one, value)
        elif isinstance(one.type, StructType):
            self._nested(one, one.type, value)
        elif one.type.code:
            if one.type is UUID:
                self.source.line(f"if len({value}) != 16: raise not_a_uuid({one.name!r}, {value})")
            self._run.append((value, one.type.code))
        else:
            self._sized(one, one.type, value)

    def _nested(self, one: Field, cls: StructType, value: str) -> None:
        variable = self._fresh("struct")
        self.source.line(f"{variable} = {value}")
        if one.nullable_in(self.version):
            run = self._run
            with self.source.block(f"if {variable} is None:"):
                self._flush(("-1" if one.tag is None else "0", "b"))
            with self.source.block("else:"):
                self._run = [*run, ("1", "b")]
                self._struct(cls, variable)
                self._flush()
        else:
            self.source.line(f"if {variable} is None: raise null_unencodable({one.name!r})")
            self._struct(cls, variable)

    def _sized(self, one: Field, kind: WireType, value: str) -> None:
        """A string, bytes or records, behind its length."""

        def content(variable: str) -> None:
            if kind is STRING:
                self.source.line(f"data = {variable}.encode()")
                variable = "data"
            self._prefix(f"len({variable})", "h" if kind is STRING else "i")
            if kind is RECORDS:
                with self.source.block(f"if len({variable}):"):
                    self.source.line("parts.append(join(pieces))")
                    self.source.line(f"parts.append({variable})")
                    self.source.line("pieces.clear()")
            else:
                self.source.line(f"write({variable})")

        self._nullable(one, value, "data", "h" if kind is STRING else "i", content)

    def _nullable(self, one: Field, value: str, variable: str, code: str, content: Callable[[str], None]) -> None:
        """Write `content`, or the length that stands for null; `code` is that of the length in old versions."""
        if not one.nullable_in(self.version):
            if one.nullable is not None or one.type is RECORDS:
                self.source.line(f"if {value} is None: raise null_unencodable({one.name!r})")
            content(value)
            return
        run = self._run
        self.source.line(f"{variable} = {value}")
        with self.source.block(f"if {variable} is None:"):
            self._flush(("", "x") if self.flexible else ("-1", code))
        with self.source.block("else:"):
            self._run = run
            content(variable)
            self._flush()

    def _prefix(self, length: str, code: str) -> None:
        """Write the pending values and the length behind them: one piece, unless the varint is a long one."""
        if not self.flexible:
            self._flush((length, code))
            return
        long_varint = "string_varint" if code == "h" else "varint"
        self.source.line(f"size = {length} + 1")
        if not self._run:
            self.source.line(f"write(ONE_BYTE[size] if size < 128 else {long_varint}(size))")
            return
        run, self._run = self._run, []
        with self.source.block("if size < 128:"):
            self._write_run([*run, ("size", "B")])
        with self.source.block("else:"):
            self._write_run(run)
            self.source.line(f"write({long_varint}(size))")

    def _array(self, one: Field, value: str) -> None:
        array, item = self._fresh("array"), self._fresh("item")
        element = one.type

        def content(variable: str) -> None:
            self._prefix(f"len({variable})", "i")
            if isinstance(element, StructType):
                with self.source.block(f"for {item} in {variable}:"):
                    self._struct(element, item)
                    self._flush()
            elif element is STRING:
                with self.source.block(f"for {item} in {variable}:"):
                    self._sized(Field(one.versions, None, "", None, False, one.name, STRING), STRING, item)
            else:
                self.source.line(f'write(pack(f">{{len({variable})}}{element.code}", *{variable}))')

        self._nullable(one, value, array, "i", content)


_CALLED_NAMES = (
    "ONE_BYTE",
    "field_missing",
    "not_a_uuid",
    "null_unencodable",
    "string_varint",
    "varint",
)
