"""Length prefixes and headers: what surrounds a message on a connection.

    request   length:int32  api_key:int16  api_version:int16  correlation_id:int32  client_id:nullable string  [tags]
    response  length:int32  correlation_id:int32  [tags]

The tags are there in flexible versions of the API, with two exceptions that let a client and a broker of different
ages understand each other: the client id never has a compact length, and the answer to ApiVersions never has tags in
its header. A frame, here, is what follows the length prefix.
"""

import struct
from collections.abc import Sequence

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.encoder import Part
from ottla.protocol.errors import MalformedMessage, UnencodableMessage
from ottla.protocol.message import Request, Response
from ottla.protocol.registry import request_class
from ottla.protocol.wire import Buffer, overrun, skip_tags

MERGE_BELOW_BYTES = 4096
"""Record data smaller than this is cheaper to copy than to send by itself."""

_API_VERSIONS = ApiKey.API_VERSIONS
_REQUEST_HEADER = struct.Struct(">hhih")
_LENGTH = struct.Struct(">i")
_LENGTH_AND_CORRELATION_ID = struct.Struct(">ii")


class RequestHeader:
    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestHeader):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # the way Python spells "not hashable"

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r})"
        )


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header of a request and the position of its body.

    The version need not be one that is served: a client that asks for the versions does not know them yet. Of an API
    that is not known, the header is taken to be the plain one.
    """
    api_key, api_version, correlation_id, client_id_size = decode_head(frame)
    cls = request_class(api_key)
    has_tags = cls is not None and cls.is_flexible(api_version)
    client_id, position = decode_client_id(frame, client_id_size, has_tags)
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def decode_head(frame: Buffer) -> tuple[int, int, int, int]:
    """The part of a request's header that is the same in all versions: key, version, correlation id, and the size of
    the client id, -1 for none."""
    try:
        return _REQUEST_HEADER.unpack_from(frame)
    except struct.error as error:
        raise MalformedMessage(f"request header: {error}") from error


def decode_client_id(frame: Buffer, size: int, has_tags: bool) -> tuple[str | None, int]:
    """The rest of a request's header: the client id, and the position of the body.

    The id is for people to read, so bytes that are no text are replaced, as Kafka does.
    """
    position = _REQUEST_HEADER.size
    client_id = None
    try:
        if size >= 0:
            stop = position + size
            if stop > len(frame):
                raise overrun("client_id", size, len(frame) - position)
            client_id = str(frame[position:stop], "utf-8", "replace")
            position = stop
        if has_tags:
            position = skip_tags(frame, position, len(frame)) if frame[position] else position + 1
    except IndexError as error:
        raise MalformedMessage(f"request header: {error}") from error
    return client_id, position


def encode_response(request: type[Request], api_version: int, correlation_id: int, response: Response) -> list[Part]:
    """A whole response, length prefix included: bytes and, between them, record data that was left as it was given."""
    head = b"\0" if _has_flexible_response_header(request, api_version) else b""
    parts = response.encode_parts(api_version, head)
    if len(parts) == 1:
        body = parts[0]
        return [_LENGTH_AND_CORRELATION_ID.pack(4 + len(body), correlation_id) + body]
    parts = merge_small(parts)
    size = 4 + sum(map(len, parts))
    parts[0] = _LENGTH_AND_CORRELATION_ID.pack(size, correlation_id) + parts[0]
    return parts


def _has_flexible_response_header(request: type[Request], api_version: int) -> bool:
    since = request.FLEXIBLE_SINCE
    return since is not None and api_version >= since and request.API_KEY is not _API_VERSIONS


def merge_small(parts: Sequence[Part]) -> list[Part]:
    """Join neighbours that are small buffers; the first of the result is always bytes."""
    merged: list[Part] = []
    small: list[Buffer] = [b""]
    for part in parts:
        if len(part) < MERGE_BELOW_BYTES and isinstance(part, bytes | bytearray | memoryview):
            small.append(part)
            continue
        if small:
            merged.append(b"".join(small))
            small = []
        merged.append(part)
    if small:
        merged.append(b"".join(small))
    return merged


def encode_request(request: Request, api_version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A whole request, length prefix included."""
    name = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(name)
    try:
        head = _REQUEST_HEADER.pack(request.API_KEY, api_version, correlation_id, size) + name
    except struct.error as error:
        raise UnencodableMessage(f"request header: {error}") from error
    if request.is_flexible(api_version):
        head += b"\0"
    body = request.encode(api_version)
    return _LENGTH.pack(len(head) + len(body)) + head + body


def decode_response(request: type[Request], api_version: int, frame: Buffer) -> tuple[int, Response]:
    """The correlation id and the message of an answer to `request`."""
    try:
        (correlation_id,) = _LENGTH.unpack_from(frame)
        position = _LENGTH.size
        if _has_flexible_response_header(request, api_version):
            position = skip_tags(frame, position, len(frame))
    except (struct.error, IndexError) as error:
        raise MalformedMessage(f"response header: {error}") from error
    return correlation_id, request.RESPONSE.decode(frame, api_version, position)
