"""Questions about the frame: versions that are not there, bodies that are cut, lengths and tags that are wrong.

Each is asked on a connection of its own, and what is compared is the answer or that there is none. Requests are taken
from the knowledge of their API, with a topic that does not exist in place of a fresh one, so that they change nothing.
"""

import random
import struct
from collections.abc import Iterator
from typing import Any

from tests.compat.questions.knowledge import knowledge_of
from tests.compat.questions.question import FRESH, FRESH_ID, NO_SUCH_TOPIC, UNKNOWN_ID, Case, RawAsk, transform

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import UnencodableMessage, UnsupportedVersion
from ottla.protocol.framing import encode_request
from ottla.protocol.message import Request
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.registry import CONTROLLER_APIS, request_class
from ottla.protocol.schema import STRING, Struct, StructType

CORRELATION_ID = 1
LISTS = (ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS)
CLIENT = "raw"
MARKER = "NULLNULLNULL"
HEAD_BYTES = 10
UNKNOWN_TAG = b"\x01\x63\x01\x00"
LONG_TAG = b"\x01\x63\x05\x00"


def framing_cases(key: ApiKey, dice: random.Random, everything: bool) -> Iterator[Case]:
    cls = request_class(key)
    assert cls is not None
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        request = _harmless(knowledge_of(key).bases(version)[0].request)
        for label, frame in _frames(cls, request, version, dice, everything):
            yield _case(cls, version, label, frame)
    for version in {cls.MIN_VERSION - 1, -1, cls.MAX_VERSION + 1, cls.MAX_VERSION + 2, 32767, -32768}:
        if version < cls.MIN_VERSION or version > cls.MAX_VERSION:
            other = bytearray(_frame(_harmless(knowledge_of(key).bases(cls.MAX_VERSION)[0].request), cls.MAX_VERSION))
            struct.pack_into(">h", other, 2, version)
            answer_version = 0 if key is ApiKey.API_VERSIONS else cls.MAX_VERSION
            yield _case(cls, answer_version, f"version {version}", bytes(other))


def _case(cls: type[Request], version: int, label: str, frame: bytes) -> Case:
    ask = RawAsk(frame, cls, version, only=NO_SUCH_TOPIC if cls.API_KEY in LISTS else "")
    return Case(cls.API_KEY, version, f"frame: {label}", (ask,), alone=True)


def _harmless(request: Request) -> Request:
    def change(leaf: Any) -> Any:
        if isinstance(leaf, str):
            return leaf.replace(FRESH, NO_SUCH_TOPIC)
        return UNKNOWN_ID if leaf == FRESH_ID else leaf

    changed = transform(request, change)
    assert isinstance(changed, Request)
    return changed


def _frame(request: Request, version: int, client_id: str | None = CLIENT) -> bytes:
    return encode_request(request, version, CORRELATION_ID, client_id)[4:]


def _frames(
    cls: type[Request], request: Request, version: int, dice: random.Random, everything: bool
) -> Iterator[tuple[str, bytes]]:
    frame = _frame(request, version)
    body_at = HEAD_BYTES + len(CLIENT) + (1 if cls.is_flexible(version) else 0)
    cuts = range(body_at, len(frame))
    for position in dice.sample(cuts, min(len(cuts), 12 if everything else 2)):
        yield f"cut after {position}", frame[:position]
    yield "trailing bytes", frame + b"\0\0\0"
    yield "no client id", _frame(request, version, None)
    yield "empty client id", _frame(request, version, "")
    if cls.is_flexible(version):
        yield "unknown tag in the header", frame[: body_at - 1] + UNKNOWN_TAG + frame[body_at:]
        yield "long tag in the header", frame[: body_at - 1] + b"\x01\x63\xff\x7f" + frame[body_at:]
        yield "unknown tag in the body", frame[:-1] + UNKNOWN_TAG
        yield "long tag in the body", frame[:-1] + LONG_TAG
        yield "a tag twice", frame[:-1] + b"\x02\x63\x01\x00\x63\x01\x00"
    wrong = [*_null_strings(cls, request, version), *_array_lengths(cls, request, version)]
    yield from wrong if everything else dice.sample(wrong, min(len(wrong), 4))


def _null_strings(cls: type[Request], request: Request, version: int) -> Iterator[tuple[str, bytes]]:
    """Null where there has to be a string: no encoder writes it, so it is put in place of a marker."""
    compact = cls.is_flexible(version)
    marked, null = (bytes((len(MARKER) + 1,)), b"\0") if compact else (struct.pack(">h", len(MARKER)), b"\xff\xff")
    for path, struct_of in _structs(request, version):
        for one in struct_of(request).FIELDS:
            if version not in one.versions or one.is_array or one.nullable_in(version) or one.type is not STRING:
                continue
            copy = transform(request, lambda leaf: leaf)
            setattr(struct_of(copy), one.name, MARKER)
            try:
                frame = _frame(copy, version)
            except (UnencodableMessage, UnsupportedVersion):
                continue
            yield f"null {path}{one.name}", frame.replace(marked + MARKER.encode(), null)


def _array_lengths(cls: type[Request], request: Request, version: int) -> Iterator[tuple[str, bytes]]:
    """Other lengths of arrays: the place of a length is where none and one element first differ."""
    compact = cls.is_flexible(version)
    for path, struct_of in _structs(request, version):
        for one in struct_of(request).FIELDS:
            if version not in one.versions or not one.is_array or one.tag is not None:
                continue
            try:
                frames = [_frame(_with_array(request, struct_of, one, count), version) for count in (0, 1)]
            except (UnencodableMessage, UnsupportedVersion, TypeError, AttributeError):
                continue
            position = next((at for at, pair in enumerate(zip(*frames, strict=False)) if pair[0] != pair[1]), None)
            if position is None:
                continue
            start = position if compact else position - 3
            lengths = {"null": b"\0", "huge": b"\xff\xff\xff\xff\x07", "overlong": b"\xff\xff\xff\xff\xff\xff"}
            if not compact:
                lengths = {"null": b"\xff" * 4, "-2": b"\xff\xff\xff\xfe", "huge": b"\x7f\xff\xff\xff"}
            for label, encoded in lengths.items():
                yield f"{label} {path}{one.name}", frames[1][:start] + encoded + frames[1][position + 1 :]


def _with_array(request: Request, struct_of: Any, one: Any, count: int) -> Request:
    copy = transform(request, lambda leaf: leaf)
    element = one.type() if isinstance(one.type, StructType) else one.type.default
    setattr(struct_of(copy), one.name, [element] * count)
    assert isinstance(copy, Request)
    return copy


def _structs(struct_of: Struct, version: int, path: str = "") -> Iterator[tuple[str, Any]]:
    """The request and the first element of each array of structs, with how to reach it."""
    yield path, lambda root: root
    for one in struct_of.FIELDS:
        if version not in one.versions or not isinstance(one.type, StructType):
            continue
        value = getattr(struct_of, one.name)
        if one.is_array and value:
            name = one.name
            for inner, reach in _structs(value[0], version, f"{path}{name}."):
                yield inner, lambda root, name=name, reach=reach: reach(getattr(root, name)[0])


def header_cases() -> Iterator[Case]:
    """Frames that are no request of any API; their connection is closed, or an answer is that of ApiVersions."""
    good = _frame(ApiVersionsRequest(), 0)
    keys = [-1, -32768, 32767, 500, 93, 100, *sorted(CONTROLLER_APIS)]
    frames = {f"key {int(key)}": struct.pack(">h", key) + good[2:] for key in keys}
    frames |= {
        "no bytes": b"",
        "one byte": b"\0",
        "key only": good[:2],
        "key and version": good[:4],
        "no client id size": good[:8],
        "client id size -2": good[:8] + b"\xff\xfe",
        "client id cut": good[:8] + b"\0\x10abc",
        "client id not utf-8": good[:8] + b"\0\x02\xff\xfe",
        "zeros": bytes(40),
        "ones": b"\xff" * 40,
        "text": b"GET / HTTP/1.1\r\n\r\n",
    }
    for label, frame in frames.items():
        yield _case(ApiVersionsRequest, 0, label, frame)
    for label, length in {
        "length -1": -1,
        "length min": -(2**31),
        "length max": 2**31 - 1,
        "too long": 1_000_001,
    }.items():
        ask = RawAsk(struct.pack(">i", length) + good, ApiVersionsRequest, 0, prefixed=True)
        yield Case(ApiKey.API_VERSIONS, 0, f"frame: {label}", (ask,), alone=True)
