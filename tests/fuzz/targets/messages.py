"""Every declared message, request and answer, in every version: bytes in, and out again.

The first three bytes choose the message and its version; the rest is what is decoded. What must hold: bytes are
refused as malformed or read, and what was read is written and read again as the same.
"""

import random
from collections.abc import Hashable, Iterable

from tests.fuzz.generator import RequestMaker
from tests.fuzz.target import Finding, PlainTarget

from ottla.protocol.errors import MalformedMessage
from ottla.protocol.message import Message
from ottla.protocol.registry import BROKER_APIS, request_class

CHOICE_BYTES = 3


def _messages() -> list[type[Message]]:
    found: list[type[Message]] = []
    for key in BROKER_APIS:
        cls = request_class(key)
        assert cls is not None
        found += (cls, cls.RESPONSE)
    return found


class MessagesTarget(PlainTarget):
    name = "messages"
    longest_bytes = 1024

    def __init__(self) -> None:
        self._messages = _messages()

    def seeds(self) -> list[bytes]:
        return [bytes([number >> 8, number & 0xFF, 0]) + bytes(8) for number in range(0, len(self._messages), 9)]

    def _choice(self, data: bytes) -> tuple[type[Message], int]:
        cls = self._messages[int.from_bytes(data[:2], "big") % len(self._messages)]
        return cls, cls.MIN_VERSION + data[2] % (cls.MAX_VERSION - cls.MIN_VERSION + 1)

    def run(self, data: bytes) -> Iterable[Hashable]:
        if len(data) < CHOICE_BYTES:
            return ()
        cls, version = self._choice(data)
        try:
            message = cls.decode(data[CHOICE_BYTES:], version)
        except MalformedMessage:
            return ()
        written = message.encode(version)
        # By text, since some numbers are not equal to themselves.
        if repr(cls.decode(written, version)) != repr(message):
            raise Finding(f"{cls.__name__} v{version} is not read as it was written")
        return ()

    def mutate(self, dice: random.Random, data: bytes, other: bytes) -> bytes | None:
        """Another message with fields at random, or the same bytes under another version."""
        if dice.random() < 0.3 and len(data) > CHOICE_BYTES:
            return data[:2] + bytes([dice.getrandbits(8)]) + data[CHOICE_BYTES:]
        number = dice.randrange(len(self._messages))
        cls = self._messages[number]
        version = dice.randint(cls.MIN_VERSION, cls.MAX_VERSION)
        maker = RequestMaker(dice, [], {"one": bytes(16)})
        message = maker.message(cls, version)
        choice = number.to_bytes(2, "big") + bytes([version - cls.MIN_VERSION])
        return choice + message.encode(version)
