"""Questions from declarations: a good request with one field after the other set to values at and beyond the borders.

What a value means is known by the name of its field: `Hints` has values for names, and knowledge of an API adds its
own. A field without hints gets the borders of its type. Values that would make a broker work or wait for long are
never among them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.compat.questions.question import NO_SUCH_TOPIC, UNKNOWN_ID, clone

from ottla.protocol.message import Request
from ottla.protocol.schema import ZERO_UUID, Field, Struct, StructType, WireType

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
LONG_NAME = "n" * 250

TOPIC_NAMES = (
    NO_SUCH_TOPIC,
    "",
    ".",
    "..",
    "a/b",
    "ä",
    "with space",
    "a:b",
    "n" * 249,
    LONG_NAME,
    "__consumer_offsets",
)
PARTITIONS = (1, 2, 3, 99, -1, INT32_MAX, -INT32_MAX - 1)
TIMEOUTS = (0, -1, 30_000, INT32_MAX)
EPOCHS = (0, 1, 7, -1, -2, INT32_MAX)
OFFSETS = (0, 1, 5, 9, 10, 11, 1000, -1, -2, -3, -6, INT64_MAX, -INT64_MAX - 1)

_BY_NAME: dict[str, tuple[Any, ...]] = {
    "topic": TOPIC_NAMES,
    "topic_name": TOPIC_NAMES,
    "name": TOPIC_NAMES,
    "topic_names": TOPIC_NAMES,
    "topics": TOPIC_NAMES,
    "index": PARTITIONS,
    "partition": PARTITIONS,
    "partitions": PARTITIONS,
    "partition_index": PARTITIONS,
    "partition_indexes": PARTITIONS,
    "timeout_ms": TIMEOUTS,
    "max_wait_ms": (0, 1, 20, -1, -INT32_MAX - 1),
    "current_leader_epoch": EPOCHS,
    "leader_epoch": EPOCHS,
    "last_fetched_epoch": EPOCHS,
    "offset": OFFSETS,
    "fetch_offset": OFFSETS,
}


@dataclass(frozen=True)
class Hints:
    """Values by the name of a field, or by its path from the request where a name means two things."""

    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def find(self, path: str, name: str) -> tuple[Any, ...] | None:
        for known in (path, name):
            if known in self.values:
                return self.values[known]
        return _BY_NAME.get(name)


@dataclass(frozen=True)
class Mutation:
    """One change: `label` says which; `apply` makes it on a copy."""

    path: str
    label: str
    apply: Callable[[Any], None]

    def on(self, request: Request) -> Request:
        changed = clone(request)
        assert isinstance(changed, Request)
        self.apply(changed)
        return changed


def mutations(request: Request, version: int, hints: Hints) -> Iterator[Mutation]:
    """All single changes of a request in a version. They reach into the first element of arrays."""
    yield from _of_struct(request, version, hints, "", lambda root: root)


def _of_struct(
    struct: Struct, version: int, hints: Hints, path: str, reach: Callable[[Any], Any]
) -> Iterator[Mutation]:
    for one in struct.FIELDS:
        if version not in one.versions:
            continue
        value = getattr(struct, one.name)
        where = f"{path}.{one.name}" if path else one.name
        if one.nullable_in(version):
            yield _set(reach, one, where, None)
        if one.is_array:
            yield from _of_array(one, value, version, hints, where, reach)
        elif isinstance(one.type, StructType):
            if value is not None:
                yield from _of_struct(value, version, hints, where, _into(reach, one.name))
        else:
            for other in _values(one, one.type, hints, where):
                if other != value:
                    yield _set(reach, one, where, other)


def _of_array(
    one: Field, value: list[Any] | None, version: int, hints: Hints, path: str, reach: Callable[[Any], Any]
) -> Iterator[Mutation]:
    yield _set(reach, one, path, [])
    if not value:
        if isinstance(one.type, WireType):
            for other in _values(one, one.type, hints, path):
                yield _set(reach, one, path, [other])
        return
    yield Mutation(path, f"{path} doubled", lambda root: _double(getattr(reach(root), one.name)))
    if isinstance(one.type, StructType):
        yield from _of_struct(value[0], version, hints, path, _first(reach, one.name))
        return
    for other in _values(one, one.type, hints, path):
        if [other] != value:
            yield _set(reach, one, path, [other])
            yield _set(reach, one, path, [*value, other])


def _double(array: list[Any]) -> None:
    array.append(clone(array[-1]))


def _into(reach: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    return lambda root: getattr(reach(root), name)


def _first(reach: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    return lambda root: getattr(reach(root), name)[0]


def _set(reach: Callable[[Any], Any], one: Field, path: str, value: Any) -> Mutation:
    return Mutation(path, f"{path}={_shown(value)}", lambda root: setattr(reach(root), one.name, clone(value)))


def _shown(value: Any) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= 30 else f"{text[:20]}...{len(text)}"


def _values(one: Field, kind: WireType, hints: Hints, path: str) -> tuple[Any, ...]:
    hinted = hints.find(path, one.name)
    if hinted is not None and _fits(hinted, kind):
        return hinted
    if kind.name == "string":
        return ("", "x", "ä€", "y" * 300)
    if kind.name == "uuid":
        return (ZERO_UUID, UNKNOWN_ID, b"\0" * 15 + b"\1", b"\xff" * 16)
    if kind.name == "bytes":
        return (b"", b"\0", b"x" * 100)
    if kind.name == "records":
        return ()
    if kind.code == "?":
        return (False, True)
    if kind.code == "d":
        return (0.0, -1.0, 1.5, 1e308, float("inf"), float("-inf"))
    if kind.code == "H":
        return (0, 1, 65535)
    most = (1 << (_BITS[kind.code] - 1)) - 1
    return (0, 1, 2, -1, -2, 100, most, -most - 1)


def _fits(values: tuple[Any, ...], kind: WireType) -> bool:
    wanted = {"string": str, "uuid": bytes, "bytes": bytes, "records": bytes, "bool": bool, "float64": float}
    return all(value is None or isinstance(value, wanted.get(kind.name, int)) for value in values)
