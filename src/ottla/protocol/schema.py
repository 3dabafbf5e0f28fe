"""How a message is declared: typed classes whose fields carry their versions.

    class PartitionProduceData(Struct):
        index: Int32 = field("0+")
        records: Records | None = field("0+", nullable="0+")

The annotation is the wire type (`Int32` is an `int` to the type checker), `field` says in which versions it exists.
What is true of every declaration:

- Fields are slots and keyword arguments, in the order of the wire; an argument left out takes Kafka's default, and
  lists and structs are fresh ones.
- Two structs are equal when they are of one class and all their fields are equal.
- A struct is never used before it is declared, so that annotations are real types and nesting is finite.

Nothing here reads or writes bytes: `ottla.protocol.decoder` and `encoder` compile that from the declarations.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Union, dataclass_transform, get_args, get_origin

from ottla.protocol.source import Source

ZERO_UUID = bytes(16)


class WireType(NamedTuple):
    """A type of the protocol; `code` is its letter in `struct`, empty for those of variable length."""

    name: str
    code: str
    default: object


STRING = WireType("string", "", "")
BYTES = WireType("bytes", "", b"")
RECORDS = WireType("records", "", None)
BOOL = WireType("bool", "?", False)
UUID = WireType("uuid", "16s", ZERO_UUID)

Int8 = Annotated[int, WireType("int8", "b", 0)]
Int16 = Annotated[int, WireType("int16", "h", 0)]
Uint16 = Annotated[int, WireType("uint16", "H", 0)]
Int32 = Annotated[int, WireType("int32", "i", 0)]
Int64 = Annotated[int, WireType("int64", "q", 0)]
Float64 = Annotated[float, WireType("float64", "d", 0.0)]
Uuid = Annotated[bytes, UUID]
Records = Annotated[Any, RECORDS]
"""A decoded one is a `memoryview` into the frame. To encode, any buffer will do, and so will anything else with a
length, such as a range of a file: it is handed through, unread, for the server to send."""

_PLAIN_TYPES = {str: STRING, bytes: BYTES, bool: BOOL}


class Versions(NamedTuple):
    """A closed range of versions; `last` is None where no version has ended it yet."""

    first: int
    last: int | None

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version and (self.last is None or version <= self.last)

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """Kafka's notation: `3+`, `0-14`, `5`."""
        if text.endswith("+"):
            return cls(int(text[:-1]), None)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))


class _Unset:
    def __repr__(self) -> str:
        return "<default>"


UNSET: Any = _Unset()


@dataclass(slots=True, eq=False)
class Field:
    """One field of a struct. `name` and `type` are filled in when its class is created."""

    versions: Versions
    nullable: Versions | None
    default: Any
    tag: int | None
    ignorable: bool
    name: str = ""
    type: "WireType | StructType" = STRING
    is_array: bool = False

    def nullable_in(self, version: int) -> bool:
        return self.nullable is not None and version in self.nullable

    @property
    def has_fresh_default(self) -> bool:
        """Whether the default is mutable, so that each object needs its own."""
        return self.default is UNSET


def field(
    versions: str,
    *,
    nullable: str | None = None,
    default: object = UNSET,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Declare a field.

    `tag` makes it a tagged field in all its versions. `ignorable` says what happens to a value that is not the default
    in a version without the field: dropped silently, or refused.
    """
    nullable_versions = None if nullable is None else Versions.parse(nullable)
    return Field(Versions.parse(versions), nullable_versions, default, tag, ignorable)


def _wire_type(annotation: Any) -> tuple["WireType | StructType", bool]:
    """The wire type an annotation stands for, and whether it is an array of it."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        (annotation,) = (member for member in get_args(annotation) if member is not types.NoneType)
        origin = get_origin(annotation)
    if origin is list:
        element, is_array = _wire_type(get_args(annotation)[0])
        if is_array:
            raise TypeError("an array of arrays is not a type of the protocol")
        return element, True
    if origin is Annotated:
        return annotation.__metadata__[0], False
    if annotation in _PLAIN_TYPES:
        return _PLAIN_TYPES[annotation], False
    if isinstance(annotation, StructType):
        return annotation, False
    raise TypeError(f"{annotation!r} is not a type of the protocol")


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Turns the declared fields of a class into slots, and keeps them, in order, as `FIELDS`."""

    FIELDS: tuple[Field, ...]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: object) -> "StructType":
        declared = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        body = {key: value for key, value in namespace.items() if key not in declared}
        body["__slots__"] = tuple(declared)
        cls = super().__new__(mcs, name, bases, body, **options)
        for key, one in declared.items():
            one.name = key
            one.type, one.is_array = _wire_type(cls.__annotations__[key])
            if one.default is UNSET and not one.is_array and isinstance(one.type, WireType):
                one.default = one.type.default
        cls.FIELDS = tuple(declared.values())
        return cls


class Struct(metaclass=StructType):
    """A piece of a message. Equality and text are by fields; instances are mutable and therefore not hashable."""

    FIELDS: ClassVar[tuple[Field, ...]]
    __hash__ = None  # type: ignore[assignment]  # the way Python spells "not hashable"

    def __init__(self, **values: object) -> None:
        """Make the constructor of the class on its first use; it replaces this one from then on."""
        from ottla.protocol._twin import equip

        equip(type(self))(self, **values)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in self.FIELDS)

    def __repr__(self) -> str:
        values = ", ".join(f"{one.name}={_text(getattr(self, one.name, UNSET))}" for one in self.FIELDS)
        return f"{type(self).__name__}({values})"


def _text(value: object) -> str:
    """What a value looks like in a log; of record data only the size."""
    return f"<{len(value)} bytes>" if isinstance(value, memoryview) else repr(value)


def compile_constructor(cls: StructType) -> Callable[..., None]:
    source = Source(f"{cls.__module__}.{cls.__qualname__}.__init__")
    unset = source.constant("UNSET", UNSET)
    arguments = ["self", "*"] if cls.FIELDS else ["self"]
    for one in cls.FIELDS:
        default = unset if one.has_fresh_default else source.constant(f"default_{one.name}", one.default)
        arguments.append(f"{one.name}={default}")
    with source.block(f"def __init__({', '.join(arguments)}):"):
        for one in cls.FIELDS:
            value = one.name
            if one.is_array and one.has_fresh_default:
                value = f"[] if {one.name} is {unset} else {one.name}"
            elif isinstance(one.type, StructType) and one.has_fresh_default:
                value = f"{source.constant(one.type.__name__, one.type)}() if {one.name} is {unset} else {one.name}"
            source.line(f"self.{one.name} = {value}")
        if not cls.FIELDS:
            source.line("pass")
    return source.compile("__init__")
