"""From a message class and a version to the function that decodes it.

The whole message becomes one function: structs are read in place, arrays are loops, and the only calls are those that
create objects. The rules of the text it writes:

- `buffer` is never copied; `position` is the next unread byte, `end` the length of the buffer.
- Fields of fixed width next to each other, and the length prefix that follows them, are read by one `unpack_from`. A
  run ends where the width depends on what was read.
- Before anything is created, its length or count is checked against the bytes that are left. Reading beyond the end is
  an IndexError or a struct.error; `Message.decode` turns those into MalformedMessage.
- What is empty takes no memory: empty arrays are all the same one, which refuses to change. With lists of the right
  size from the start, this keeps a decoded message below 40 times its frame, whatever the frame says.
- Objects are created without their constructor, so every field is assigned, also those the version lacks.
"""

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ottla.protocol import wire
from ottla.protocol.schema import BYTES, RECORDS, STRING, Field, StructType, WireType
from ottla.protocol.source import Source

Decoder = Callable[[wire.Buffer, int, bool], Any]


def compile_decoder(cls: StructType, version: int, flexible: bool) -> Decoder:
    return _DecoderWriter(cls, version, flexible).write()


def minimum_size(cls: StructType, version: int, flexible: bool) -> int:
    """The fewest bytes a struct can take; what an array announces is checked against it."""
    total = 1 if flexible else 0
    for one in cls.FIELDS:
        if version in one.versions and one.tag is None:
            total += _minimum_field_size(one, version, flexible)
    return total


def _minimum_field_size(one: Field, version: int, flexible: bool) -> int:
    if one.is_array:
        return 1 if flexible else 4
    if isinstance(one.type, StructType):
        return 1 if one.nullable_in(version) else minimum_size(one.type, version, flexible)
    if one.type.code:
        return struct.calcsize(one.type.code)
    if flexible:
        return 1
    return 2 if one.type is STRING else 4


def smallest_element(element: WireType | StructType, version: int, flexible: bool) -> int:
    """The fewest bytes of one element of an array."""
    if isinstance(element, StructType):
        return minimum_size(element, version, flexible)
    if element is STRING:
        return 1 if flexible else 2
    return struct.calcsize(element.code)


class _DecoderWriter:
    """Writes the text top down; `_run` holds the fixed-width reads that are not written yet."""

    def __init__(self, cls: StructType, version: int, flexible: bool) -> None:
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.source = Source(f"decode {cls.__name__} v{version}")
        self._run: list[tuple[str, str]] = []
        self._names = 0

    def write(self) -> Decoder:
        source = self.source
        source.constants.update(new=object.__new__, unpack_from=struct.unpack_from)
        source.constants.update((name, getattr(wire, name)) for name in _CALLED_NAMES)
        with source.block("def decode(buffer, position, exact):"):
            source.line("end = len(buffer)")
            if self._has_records(self.cls):
                source.line("view = memoryview(buffer)")
            self._struct(self.cls, "message")
            self._flush()
            source.line("if exact and position != end: raise trailing(position, end)")
            source.line("return message")
        return source.compile("decode")

    def _has_records(self, cls: StructType) -> bool:
        present = (one for one in cls.FIELDS if self.version in one.versions)
        return any(
            self._has_records(one.type) if isinstance(one.type, StructType) else one.type is RECORDS for one in present
        )

    def _fresh(self, word: str) -> str:
        """A local name that no other struct or loop uses."""
        self._names += 1
        return f"{word}{self._names}"

    def _flush(self) -> None:
        """Write the pending reads: one byte by index, anything else by one `unpack_from`."""
        run, self._run = self._run, []
        if not run:
            return
        codes = "".join(code for _, code in run)
        targets = ", ".join(target for target, _ in run)
        layout = struct.Struct(">" + codes)
        if codes == "B":
            self.source.line(f"{targets} = buffer[position]")
        else:
            name = "unpack_" + codes.replace("?", "o")
            self.source.constants.setdefault(name, layout.unpack_from)
            self.source.line(f"{targets}{',' if len(run) == 1 else ''} = {name}(buffer, position)")
        self.source.line(f"position += {layout.size}")

    def _struct(self, cls: StructType, variable: str) -> None:
        line = self.source.line
        present = [one for one in cls.FIELDS if self.version in one.versions]
        self._flush()
        line(f"{variable} = new({self.source.constant(cls.__name__, cls)})")
        for one in cls.FIELDS:
            if one.tag is not None or one not in present:
                self._default(one, f"{variable}.{one.name}")
        for one in present:
            if one.tag is None:
                self._field(one, f"{variable}.{one.name}")
        if self.flexible:
            self._tags([one for one in present if one.tag is not None], variable)

    def _default(self, one: Field, target: str) -> None:
        if not one.has_fresh_default:
            self.source.line(f"{target} = {self.source.constant('default_' + one.name, one.default)}")
        elif one.is_array:
            self.source.line(f"{target} = NO_ITEMS")
        else:
            assert isinstance(one.type, StructType)
            self.source.line(f"{target} = new({self.source.constant(one.type.__name__, one.type)})")
            for inner in one.type.FIELDS:
                self._default(inner, f"{target}.{inner.name}")

    def _tags(self, known: list[Field], variable: str) -> None:
        self._run.append(("count", "B"))
        self._flush()
        if not known:
            self.source.line("if count: position = skip_tags(buffer, position - 1, end)")
            return
        tag, stop = self._fresh("tag"), self._fresh("stop")
        with self.source.block("if count:"):
            self.source.line("count, position = read_varint(buffer, position - 1)")
            with self.source.block("for _ in range(count):"):
                self.source.line(f"{tag}, position, {stop} = read_tag(buffer, position, end)")
                word = "if"
                for one in known:
                    with self.source.block(f"{word} {tag} == {one.tag}:"):
                        self._field(one, f"{variable}.{one.name}")
                        self._flush()
                        self.source.line(
                            f"if position != {stop}: raise tag_size_differs({one.name!r}, {stop}, position)"
                        )
                    word = "elif"
                self.source.line(f"else: position = {stop}")

    def _field(self, one: Field, target: str) -> None:
        if one.is_array:
            self._array(one, target)
        elif isinstance(one.type, StructType):
            self._nested(one, one.type, target)
        elif one.type.code:
            self._run.append((target, one.type.code))
        else:
            self._sized(one, one.type, target)

    def _nested(self, one: Field, cls: StructType, target: str) -> None:
        variable = self._fresh("struct")
        present: AbstractContextManager[None] = nullcontext()
        if one.nullable_in(self.version):
            self._run.append(("presence", "b"))
            self._flush()
            self.source.line(f"if presence {'<' if one.tag is None else '<='} 0: {target} = None")
            present = self.source.block("else:")
        with present:
            self._struct(cls, variable)
            self._flush()
            self.source.line(f"{target} = {variable}")

    def _size_before(self, one: Field, code: str, target: str) -> AbstractContextManager[None]:
        """Read a length or count into `size`, deal with null, and open the block for what is not null.

        In flexible versions `size` is one more than the length.
        """
        self._run.append(("size", "B" if self.flexible else code))
        self._flush()
        if self.flexible:
            self.source.line("if size > 127: size, position = read_varint(buffer, position - 1)")
        is_null = "not size" if self.flexible else "size < 0"
        if one.nullable_in(self.version):
            self.source.line(f"if {is_null}: {target} = None")
            return self.source.block("else:")
        self.source.line(f"if {is_null}: raise null_refused({one.name!r})")
        return nullcontext()

    def _sized(self, one: Field, kind: WireType, target: str) -> None:
        """A string, bytes or records, behind its length."""
        line = self.source.line
        with self._size_before(one, "h" if kind is STRING else "i", target):
            line(f"stop = position + size{' - 1' if self.flexible else ''}")
            if kind is STRING and self.flexible:
                line(f"if size > 32768: raise string_too_long({one.name!r}, size - 1)")
            line(f"if stop > end: raise overrun({one.name!r}, stop - position, end - position)")
            line(f"{target} = {_SLICES[kind]}")
            line("position = stop")

    def _array(self, one: Field, target: str) -> None:
        with self._size_before(one, "i", target):
            if self.flexible:
                self.source.line("size -= 1")
            self._check_count(one, smallest_element(one.type, self.version, self.flexible))
            self.source.line(f"if not size: {target} = NO_ITEMS")
            with self.source.block("else:"):
                if isinstance(one.type, WireType) and one.type.code:
                    self._numbers(one.type, target)
                else:
                    self._elements(one, one.type, target)

    def _check_count(self, one: Field, smallest: int) -> None:
        """An element without a single byte of its own is counted as one, so that no count is unbounded."""
        product = f"size * {smallest}" if smallest > 1 else "size"
        self.source.line(f"if {product} > end - position: raise too_many({one.name!r}, size, end - position)")

    def _elements(self, one: Field, element: WireType | StructType, target: str) -> None:
        """Structs or strings, into a list that has its final size from the start."""
        array, index, item = self._fresh("array"), self._fresh("index"), self._fresh("item")
        self.source.line(f"{array} = {target} = [None] * size")
        with self.source.block(f"for {index} in range(size):"):
            if isinstance(element, StructType):
                self._struct(element, item)
                self._flush()
            else:
                self._sized(Field(one.versions, None, "", None, False, one.name, element), element, item)
            self.source.line(f"{array}[{index}] = {item}")

    def _numbers(self, element: WireType, target: str) -> None:
        """Numbers, all at once; the count was checked, so the slice is never cut short."""
        assert len(element.code) == 1, f"no array of {element.name} is known"
        width = struct.calcsize(element.code)
        if element.code == "b":
            self.source.line(f"{target} = list(map(SIGNED.__getitem__, buffer[position : position + size]))")
        else:
            self.source.line(f'{target} = list(unpack_from(f">{{size}}{element.code}", buffer, position))')
        self.source.line(f"position += size{f' * {width}' if width > 1 else ''}")


_SLICES = {
    STRING: 'str(buffer[position:stop], "utf-8")',
    BYTES: "bytes(buffer[position:stop])",
    RECORDS: "view[position:stop] if stop > position else NO_RECORDS",
}
_CALLED_NAMES = (
    "NO_ITEMS",
    "NO_RECORDS",
    "SIGNED",
    "null_refused",
    "overrun",
    "read_tag",
    "read_varint",
    "skip_tags",
    "string_too_long",
    "tag_size_differs",
    "too_many",
    "trailing",
)
