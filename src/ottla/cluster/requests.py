"""What the controller is asked and what it answers, item by item, in Kafka's terms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

from ottla.cluster.quotas import QuotaEntity
from ottla.coordination.store import Operation
from ottla.protocol.errors import ErrorCode
from ottla.protocol.uuids import ZERO_UUID

USE_DEFAULT = -1

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Decision(Generic[Result]):
    """What must be written, all of it or nothing, for the result to be true. An error writes nothing."""

    result: Result
    operations: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create, by counts or by `assignments`: pairs of partition index and broker ids."""

    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopicResult:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: bytes = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeleteTopicResult:
    """`name` is None for an id that is not known."""

    name: str | None
    topic_id: bytes = ZERO_UUID
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """`count` is the number of partitions afterwards; `assignments` has the replicas of each new one, in order."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsResult:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ConfigOperation(IntEnum):
    """Kafka's numbers of what IncrementalAlterConfigs can do to a setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    name: str
    value: str | None
    operation: ConfigOperation = ConfigOperation.SET


@dataclass(frozen=True, slots=True)
class AlterConfigsRequest:
    """Changes of one topic's or one broker's settings; a broker's name is its id, or empty for all brokers.

    With `replaces_all` (Kafka's older AlterConfigs) every setting that is not named goes back to its default.
    """

    name: str
    changes: tuple[ConfigChange, ...]
    replaces_all: bool = False


@dataclass(frozen=True, slots=True)
class AlterConfigsResult:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """A new limit, or None to have none of its own."""

    key: str
    value: float | None


@dataclass(frozen=True, slots=True)
class AlterQuotasRequest:
    """Changes of one entity's quotas. Whoever asks has looked up the name of an address: `is_unknown_host`."""

    entity: QuotaEntity
    changes: tuple[QuotaChange, ...]
    is_unknown_host: bool = False


@dataclass(frozen=True, slots=True)
class AlterQuotasResult:
    entity: QuotaEntity
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


Charge = Callable[[str | bytes, int], None]
"""Called with a topic, by name or id, and how many partitions of it are to be created or deleted, once that is found to
be possible and before it is decided. Raises `KafkaError` when the client may not change that much."""


def free_of_charge(topic: str | bytes, partitions: int) -> None:
    """Nobody counts."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The broker's settings that decisions depend on, by Kafka's names with underscores."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool = False
