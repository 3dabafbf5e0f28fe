"""What the compatibility tests ask of every client, in one small vocabulary.

An adapter drives a real client library, unchanged and with ordinary settings, and speaks this vocabulary; the contract
then asks the same questions of all of them. Consumers read by assignment: no group is joined and nothing is committed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

Header = tuple[str, bytes | None]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]
When = Literal["earliest", "latest"] | int

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
CREATE_TIME_MS = 1_700_000_000_000
TIMEOUT_SECONDS = 60.0


class Message(NamedTuple):
    """A record to send; without a timestamp the client takes the time of sending."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None


class Stored(NamedTuple):
    """A record that came back."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


@dataclass(frozen=True)
class Cluster:
    """The cluster as a client sees it; `nodes` are addresses by node id."""

    controller_id: int
    nodes: Mapping[int, str] = field(default_factory=dict)
    cluster_id: str | None = None


class Refused(Exception):
    """The broker answered with an error code (Kafka's number)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"error {code}: {message}")
        self.code = code


RICH_MESSAGES = (
    Message(b"plain"),
    Message(b"keyed", key=b"k1", timestamp_ms=CREATE_TIME_MS),
    Message(None, key=b"tombstone", timestamp_ms=CREATE_TIME_MS + 1),
    Message(b"", key=b"", timestamp_ms=CREATE_TIME_MS + 2),
    Message(bytes(range(256)), key=b"\x00\xff", timestamp_ms=CREATE_TIME_MS + 3),
    Message(b"one header", headers=(("name", b"value"),)),
    Message(b"many", headers=(("a", b"1"), ("b", b"\x00\x01"), ("a", b"2"), ("empty", b""), ("null", None))),
    Message("čaj ☕".encode(), key="klíč".encode(), headers=(("hlavička", b"hodnota"),)),
    Message(b"earlier than the one before", timestamp_ms=CREATE_TIME_MS - 86_400_000),
)


class Client(ABC):
    """Producing and consuming through one client library."""

    name: ClassVar[str]
    reports_offsets: ClassVar[bool] = True
    rich_messages: ClassVar[Sequence[Message]] = RICH_MESSAGES

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replication: int = 1
    ) -> None: ...

    @abstractmethod
    def produce(
        self,
        topic: str,
        partition: int,
        messages: Sequence[Message],
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send all, wait for the acknowledgements, answer the offsets (nothing useful with acks=0)."""

    @abstractmethod
    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Stored]:
        """`count` records from `start` on; a start out of range falls back to the earliest offset."""

    @abstractmethod
    def offset_at(self, topic: str, partition: int, when: When) -> int | None:
        """The first, the next, or the first offset with at least this timestamp; None when there is none."""

    def close(self) -> None:
        """Let go of what the adapter holds; most hold nothing between calls."""
        return


class AdminClient(Client):
    """A client that also has the admin calls."""

    @abstractmethod
    def delete_topic(self, topic: str) -> None: ...

    @abstractmethod
    def create_partitions(self, topic: str, total: int) -> None: ...

    @abstractmethod
    def partition_count(self, topic: str) -> int | None:
        """How many partitions the topic has; None when there is no such topic. Asking creates nothing."""

    @abstractmethod
    def topic_configs(self, topic: str) -> dict[str, str | None]: ...

    @abstractmethod
    def describe_cluster(self) -> Cluster: ...
