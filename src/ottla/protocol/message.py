"""Messages: structs that stand by themselves on the wire, in numbered versions.

    class ProduceRequest(Request, key=ApiKey.PRODUCE, versions=(3, 13), flexible=9): ...
    class ProduceResponse(Response, answers=ProduceRequest): ...

`flexible` is the first version with compact lengths and tagged fields, None where there is none. A response has the
versions of its request. The codec of a version is compiled when that version is first encoded or decoded.
"""

import struct
from typing import ClassVar, Self

from ottla.protocol._twin import decoder_of, encoder_of
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.decoder import Decoder
from ottla.protocol.encoder import Encoder, Part
from ottla.protocol.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from ottla.protocol.schema import Struct
from ottla.protocol.wire import Buffer

_UNREADABLE = (struct.error, IndexError, UnicodeDecodeError)
_UNWRITABLE = (struct.error, TypeError, AttributeError, UnicodeEncodeError)


class Message(Struct):
    """A struct with versions, and bytes in and out."""

    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_SINCE: ClassVar[int | None]
    _decoders: ClassVar[dict[int, Decoder]]
    _encoders: ClassVar[dict[int, Encoder]]

    def __init_subclass__(cls, *, versions: tuple[int, int] | None = None, flexible: int | None = None) -> None:
        cls._decoders = {}
        cls._encoders = {}
        if versions is not None:
            cls.MIN_VERSION, cls.MAX_VERSION = versions
            cls.FLEXIBLE_SINCE = flexible

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return cls.FLEXIBLE_SINCE is not None and version >= cls.FLEXIBLE_SINCE

    @classmethod
    def decode(cls, buffer: Buffer, version: int, position: int = 0, *, exact: bool = True) -> Self:
        """Read one message that starts at `position` and ends where the buffer ends, or raise MalformedMessage.

        With `exact` off, what follows the message is ignored: Kafka's brokers do, and librdkafka relies on it.
        """
        decoder = cls._decoders.get(version) or cls._compile_decoder(version)
        try:
            message: Self = decoder(buffer, position, exact)
        except _UNREADABLE as error:
            raise MalformedMessage(f"{cls.__name__} v{version}: {error}") from error
        return message

    def encode(self, version: int) -> bytes:
        """The bytes of the message; record data must be given as buffers."""
        parts = self.encode_parts(version)
        try:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        except TypeError as error:
            raise UnencodableMessage(f"{type(self).__name__} v{version}: {error}") from error

    def encode_parts(self, version: int, head: bytes = b"") -> list[Part]:
        """`head` and the message, in pieces: bytes, and between them the record data as it was given."""
        encoder = self._encoders.get(version) or self._compile_encoder(version)
        try:
            return encoder(self, head)
        except _UNWRITABLE as error:
            raise UnencodableMessage(f"{type(self).__name__} v{version}: {error}") from error

    @classmethod
    def _compile_decoder(cls, version: int) -> Decoder:
        cls._check_version(version)
        cls._decoders[version] = decoder_of(cls, version, cls.is_flexible(version))
        return cls._decoders[version]

    @classmethod
    def _compile_encoder(cls, version: int) -> Encoder:
        cls._check_version(version)
        cls._encoders[version] = encoder_of(cls, version, cls.is_flexible(version))
        return cls._encoders[version]

    @classmethod
    def _check_version(cls, version: int) -> None:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise UnsupportedVersion(
                f"{cls.__name__} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
            )


class Request(Message):
    """What a client sends; `RESPONSE` is the class of the answer."""

    API_KEY: ClassVar[ApiKey]
    RESPONSE: ClassVar[type["Response"]]

    def __init_subclass__(cls, *, key: ApiKey, versions: tuple[int, int], flexible: int | None) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.API_KEY = key


class Response(Message):
    """What a broker answers."""

    API_KEY: ClassVar[ApiKey]

    def __init_subclass__(cls, *, answers: type[Request]) -> None:
        super().__init_subclass__(versions=(answers.MIN_VERSION, answers.MAX_VERSION), flexible=answers.FLEXIBLE_SINCE)
        cls.API_KEY = answers.API_KEY
        answers.RESPONSE = cls
