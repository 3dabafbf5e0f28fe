"""Valid requests of every API and version, filled at random from the declarations of their messages."""

import random
from typing import Any, TypeVar

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.framing import encode_request
from ottla.protocol.message import Message
from ottla.protocol.registry import BROKER_APIS, request_class
from ottla.protocol.schema import Field, StructType, WireType
from ottla.records import Codec, Record, build_batch

MessageType = TypeVar("MessageType", bound=Message)

SERVED_SHARE = 0.85
# Topics that are gone make for shallow answers: they are deleted, but not by every fourteenth request.
DELETED_SHARE = 0.1
NULL_SHARE = 0.1
LONGEST_ARRAY = 3

_LIMITS = {"b": 8, "h": 16, "i": 32, "q": 64}
_INTERESTING = (0, 1, -1, 2, 3, 100, 1000)
_TOPIC_CONFIGS = (
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "flush.messages",
    "flush.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "ottla.flush.before.ack",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
)
_CONFIG_NUMBERS = ("-1", "0", "1", "100", "1048576", "0.5", "true", "false", "delete", "compact", "compact,delete", "")
_CONFIG_WORDS = ("gzip", "zstd", "producer", "uncompressed", "CreateTime", "LogAppendTime", "9223372036854775807")
_CONFIG_VALUES = (*_CONFIG_NUMBERS, *_CONFIG_WORDS)
_CLIENT_IDS = (None, "", "fuzz", "ä" * 20)


class RequestMaker:
    """Draws requests; the ones that name topics mostly name those in `topics`, which may change meanwhile.

    Numbers that would make the broker do a lot of honest work (partitions to create, times to wait) stay small: what is
    looked for are faults, not the price of large requests.
    """

    def __init__(self, dice: random.Random, served: list[ApiKey], topics: dict[str, bytes]) -> None:
        self._dice = dice
        self._served = served
        self.topics = topics

    def frame(self) -> bytes:
        """One request, length prefix included."""
        dice = self._dice
        key = dice.choice(self._served if dice.random() < SERVED_SHARE else BROKER_APIS)
        if key is ApiKey.DELETE_TOPICS and dice.random() > DELETED_SHARE:
            key = ApiKey.METADATA
        cls = request_class(key)
        assert cls is not None
        version = dice.randint(cls.MIN_VERSION, cls.MAX_VERSION)
        return encode_request(self.message(cls, version), version, dice.getrandbits(31), dice.choice(_CLIENT_IDS))

    def message(self, cls: type[MessageType], version: int) -> MessageType:
        """Any message, with all the fields of its version."""
        message = cls()
        self._fill(message, cls.FIELDS, version)
        return message

    def _fill(self, struct: Any, fields: tuple[Field, ...], version: int) -> None:
        for field in fields:
            if version in field.versions:
                setattr(struct, field.name, self.value(field, version))

    def value(self, field: Field, version: int) -> Any:
        if field.nullable_in(version) and self._dice.random() < NULL_SHARE:
            return None
        if field.is_array:
            return [self.single(field, version) for _ in range(self._dice.randint(0, LONGEST_ARRAY))]
        return self.single(field, version)

    def single(self, field: Field, version: int) -> Any:
        if isinstance(field.type, StructType):
            struct = field.type()
            self._fill(struct, field.type.FIELDS, version)
            return struct
        special = self._special_text(field.name) if field.type.name == "string" else self._special_number(field.name)
        return self._plain(field.type) if special is None else special

    def _special_text(self, name: str) -> str | None:
        dice = self._dice
        if name in ("name", "configuration_keys") and dice.random() < 0.2:
            return dice.choice(_TOPIC_CONFIGS)
        if name in ("name", "topic", "topic_name", "topic_names", "resource_name"):
            return dice.choice(list(self.topics)) if dice.random() < 0.9 else self._text()
        if name == "value" and dice.random() < 0.8:
            return dice.choice(_CONFIG_VALUES)
        return None

    def _special_number(self, name: str) -> int | None:
        """Values for fields whose meaning is known by their name; None for all others."""
        dice = self._dice
        if name in ("num_partitions", "count", "replication_factor"):
            return dice.randint(-1, 3)
        if name == "validate_only":
            return dice.random() < 0.9
        if name in ("max_wait_ms", "timeout_ms"):
            return dice.choice((0, 1, 10, 100))
        if name == "acks":
            return dice.choice((-1, 0, 1, 1, 2))
        if name in ("partition", "index", "partition_index", "partition_indexes"):
            return dice.choice((0, 0, 1, 2, -1, 77))
        if name in ("producer_id", "session_id"):
            return dice.randint(-1, 20)
        if name in ("session_epoch", "config_operation"):
            return dice.randint(-1, 3)
        if name == "resource_type":
            return dice.choice((2, 2, 4, 4, 8, 0))
        if name in ("timestamp", "fetch_offset", "offset", "leader_epoch", "current_leader_epoch"):
            return dice.choice((-5, -4, -3, -2, -1, 0, 1, 2, 5)) if dice.random() < 0.9 else None
        return None

    def _plain(self, kind: WireType) -> Any:
        dice = self._dice
        if kind.name == "string":
            return self._text()
        if kind.name == "bytes":
            return dice.randbytes(dice.randint(0, 40))
        if kind.name == "records":
            return self._records()
        if kind.name == "uuid":
            return dice.choice(list(self.topics.values())) if dice.random() < 0.8 else dice.randbytes(16)
        if kind.code == "?":
            return dice.random() < 0.5
        if kind.code == "d":
            return dice.choice((0.0, -1.0, 1e308, float("nan"), float("inf")))
        if kind.code == "H":
            return dice.getrandbits(16)
        return self._number(_LIMITS[kind.code])

    def _number(self, bits: int) -> int:
        dice = self._dice
        most = (1 << (bits - 1)) - 1
        if dice.random() < 0.8:
            return min(most, dice.choice(_INTERESTING))
        return dice.choice((most, -most - 1, dice.randint(-most - 1, most)))

    def _text(self) -> str:
        dice = self._dice
        return "".join(chr(dice.choice((46, 47, 48, 97, 228, 0x20AC, 0x1F600))) for _ in range(dice.randint(0, 12)))

    def _records(self) -> bytes:
        """One batch, mostly a good one; faults inside of it are the business of the mutations."""
        dice = self._dice
        records = [
            Record(number, 1_700_000_000_000 + dice.randint(-10, 10), dice.randbytes(3), dice.randbytes(20), [])
            for number in range(dice.randint(1, 5))
        ]
        numbered = dice.random() < 0.3
        return build_batch(
            records,
            codec=dice.choice(list(Codec)),
            producer_id=dice.randint(0, 20) if numbered else -1,
            producer_epoch=dice.randint(0, 2) if numbered else -1,
            base_sequence=dice.randint(0, 10) if numbered else -1,
            transactional=dice.random() < 0.05,
            control=dice.random() < 0.05,
        )
