"""What a record of a ledger says.

    key   = type:int16     message of that type
    value = version:int16  message of that version; no value at all says that the key is no more

Both are declared like the messages of the protocol, so the codecs are the same. The types are numbered per topic.
"""

import struct
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from ottla.protocol.errors import MalformedMessage
from ottla.protocol.message import Message
from ottla.protocol.wire import Buffer

_NUMBER = struct.Struct(">h")
KEY_VERSION = 0


class LedgerKey(Message):
    """What a record is about. Keys have no versions: the type says it all."""

    RECORD_TYPE: ClassVar[int]
    VALUE: ClassVar[type["LedgerValue"]]

    def __init_subclass__(cls, *, record_type: int) -> None:
        super().__init_subclass__(versions=(KEY_VERSION, KEY_VERSION), flexible=None)
        cls.RECORD_TYPE = record_type


class LedgerValue(Message):
    """What is now true of a key."""

    def __init_subclass__(cls, *, of: type[LedgerKey], versions: tuple[int, int], flexible: int | None) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        of.VALUE = cls


class Entry(NamedTuple):
    """A record to be written. Without a value, what was said of the key before is void."""

    key: LedgerKey
    value: LedgerValue | None = None
    version: int = 0

    def encode(self) -> tuple[bytes, bytes | None]:
        key = _NUMBER.pack(self.key.RECORD_TYPE) + self.key.encode(KEY_VERSION)
        return key, None if self.value is None else _NUMBER.pack(self.version) + self.value.encode(self.version)


class UnknownRecordType(Exception):
    """A record of a type that this version does not know: written by a newer one, and to be left alone."""


class RecordTypes:
    """The types of one topic's records."""

    def __init__(self, keys: Iterable[type[LedgerKey]]) -> None:
        self._keys = {key.RECORD_TYPE: key for key in keys}

    def decode(self, key: Buffer | None, value: Buffer | None) -> Entry:
        """What a stored record says; `UnknownRecordType` for a newer one, `MalformedMessage` for none at all."""
        if key is None or len(key) < _NUMBER.size:
            raise MalformedMessage(f"a key of {_NUMBER.size} bytes or more expected, {key!r} came")
        (record_type,) = _NUMBER.unpack_from(key)
        key_class = self._keys.get(record_type)
        if key_class is None:
            raise UnknownRecordType(f"record type {record_type}")
        decoded_key = key_class.decode(key, KEY_VERSION, _NUMBER.size)
        if value is None:
            return Entry(decoded_key)
        if len(value) < _NUMBER.size:
            raise MalformedMessage(f"a value of {_NUMBER.size} bytes or more expected, {value!r} came")
        (version,) = _NUMBER.unpack_from(value)
        value_class = key_class.VALUE
        if not value_class.MIN_VERSION <= version <= value_class.MAX_VERSION:
            raise UnknownRecordType(f"version {version} of {value_class.__name__}")
        return Entry(decoded_key, value_class.decode(value, version, _NUMBER.size), version)
