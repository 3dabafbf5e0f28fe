"""What can go wrong in a client. Every exception that leaves it is an `OttlaError`, and says what to do next.

OttlaError
  ConfigError            a setting that does not exist or has a value that is not allowed (a ValueError too)
  ClientClosed           a call on a client that was closed
  ForkedClient           a call on a client that was made before a fork
  BrokerUnavailable      nobody answered in time; also when nobody could be reached at all
  InvalidAnswer          what came back is no answer of Kafka's protocol
  InvalidRequest         what was asked for cannot be written in Kafka's protocol
  AuthenticationFailed   TLS or SASL
  SerializationError     a key or value that the serializer, deserializer or schema does not take; WrongType (a
                         TypeError too) where a part of a record is of a type that is not taken
  BufferFull             `buffer.memory` was full for `max.block.ms`
  Unfinished             a wait with a timeout ended first; what was waited for goes on
  DeliveryTimeout        not acknowledged within `delivery.timeout.ms`: it may or may not be in the log
  Undelivered            `flush` or `close`: records failed, and nobody looked at their deliveries
  SomeFailed             a call about many things, several of which failed; `errors` has them by name
  TransactionError       a call that does not fit the state; MustAbort, TransactionAborted
  ConsumerError          PollIntervalExceeded, NoOffset, CommitFailed, CorruptBatch, LogTruncated, NotAssigned,
                         NoGroup, Interrupted
  BrokerError            a broker answered with one of Kafka's error codes; `code` is that, subclasses name the
                         usual ones: UnknownTopic, RecordTooLarge, NotAuthorized, Fenced ...
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from ottla.protocol.errors import ErrorCode


class OttlaError(Exception):
    """The root. `is_retriable` tells whether the same call may succeed later."""

    is_retriable: ClassVar[bool] = False


class ConfigError(OttlaError, ValueError):
    """A setting that does not exist, or a value that is not allowed."""


class ClientClosed(OttlaError):
    """The client was closed: make a new one."""


class ForkedClient(OttlaError):
    """The client was made in the parent of this process: make one in the child."""


class BrokerUnavailable(OttlaError):
    """No broker answered in time."""

    is_retriable = True


class InvalidAnswer(OttlaError):
    """The other side does not speak Kafka's protocol, or not well. The connection was closed."""

    is_retriable = True


class InvalidRequest(OttlaError, ValueError):
    """A name or a value does not fit into Kafka's protocol: too long, or missing where one is needed."""


class AuthenticationFailed(OttlaError):
    """The broker refused the credentials or the certificate, or the broker's certificate was refused."""


class SerializationError(OttlaError):
    """A key or a value could not be turned into bytes, or bytes could not be turned into one."""


class WrongType(SerializationError, TypeError):
    """A part of a record is of a type that is not taken: the text says which are."""


class BufferFull(OttlaError):
    """There was no room in `buffer.memory` within `max.block.ms`: records are sent faster than brokers take them."""

    is_retriable = True


class DeliveryTimeout(OttlaError):
    """A record was not acknowledged within `delivery.timeout.ms`. It may be in the log, or not."""


class Undelivered(OttlaError):
    """Records were not delivered, and nobody looked at their deliveries. `count` says how many, `cause` is the error
    of the first."""

    def __init__(self, count: int, cause: Exception) -> None:
        super().__init__(
            f"{count} {'record was' if count == 1 else 'records were'} not delivered: {cause}. To handle each failure, "
            "await what send() returned, call its result(), or give send() an on_delivery callback"
        )
        self.count = count
        self.cause = cause

    def __reduce__(self) -> tuple[object, ...]:
        return Undelivered, (self.count, self.cause)


class SomeFailed(OttlaError):
    """A call about many things did not succeed for all of them. `errors` says what each one met."""

    def __init__(self, errors: Mapping[Any, OttlaError]) -> None:
        super().__init__("; ".join(str(error) for error in errors.values()))
        self.errors = dict(errors)

    def __reduce__(self) -> tuple[object, ...]:
        return SomeFailed, (self.errors,)


class Unfinished(OttlaError, TimeoutError):
    """What was waited for is not done yet, and still goes on: wait again, or look later."""

    is_retriable = True


class TransactionError(OttlaError):
    """A call that does not fit the state of the transaction: abort it, or make a new producer, as the text says."""


class MustAbort(TransactionError):
    """Something in the transaction failed: abort it, and begin it again."""

    is_retriable = True


class TransactionAborted(TransactionError):
    """The record was dropped, because its transaction was aborted."""


class ConsumerError(OttlaError):
    """Something about reading or the consumer's group."""


class PollIntervalExceeded(ConsumerError):
    """The code between two calls took longer than `max.poll.interval.ms`, and the consumer left its group."""


class NoOffset(ConsumerError):
    """There is no position to read from: nothing committed or out of range, and `auto.offset.reset` is none."""


class CommitFailed(ConsumerError):
    """The partitions belong to another member by now: what was read since the last commit will be read again."""


class NotAssigned(ConsumerError):
    """A partition that the consumer does not read, or a consumer that reads nothing: call `assign` or `subscribe`."""


class NoGroup(ConsumerError):
    """Something that only a consumer with a `group.id` can do."""


class Interrupted(ConsumerError):
    """`wakeup` was called from another thread or task, to make a waiting call return."""

    is_retriable = True


class CorruptBatch(ConsumerError):
    """What is stored at an offset cannot be read. It stays the next thing to be read until the consumer is told to
    `seek` to `next_offset`, which is behind it."""

    def __init__(self, topic: str, partition: int, offset: int, next_offset: int, why: str) -> None:
        super().__init__(
            f"{topic}-{partition} cannot be read at offset {offset}: {why}. "
            f"seek(({topic!r}, {partition}), {next_offset}) goes on behind it"
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset
        self.why = why

    def __reduce__(self) -> tuple[object, ...]:
        return CorruptBatch, (self.topic, self.partition, self.offset, self.next_offset, self.why)


class UndecodableRecord(CorruptBatch, SerializationError):
    """A deserializer refused the key or value of a record. `seek` to `next_offset` to go on without it."""

    def __reduce__(self) -> tuple[object, ...]:
        return UndecodableRecord, (self.topic, self.partition, self.offset, self.next_offset, self.why)


class LogTruncated(ConsumerError):
    """The log of a partition was cut below what was read, and `auto.offset.reset` is none: `seek` to go on."""


class BrokerError(OttlaError):
    """A broker answered with an error code. `code` is Kafka's; `is_retriable` says whether Kafka calls it so."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(message or code.name)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return error_of, (self.code, str(self))


class UnknownTopic(BrokerError):
    """The topic or partition does not exist; a misspelt name, or one that was deleted."""


class NotAuthorized(BrokerError):
    """The broker does not allow it to this principal."""


class RecordTooLarge(BrokerError):
    """Larger than `max.request.size` here, or than the topic's `max.message.bytes` there."""


class Fenced(BrokerError):
    """Another producer or member with the same id has taken over."""


class UnsupportedByBroker(BrokerError):
    """The broker does not have this request, or not with what was asked."""


_KINDS: dict[ErrorCode, type[BrokerError]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopic,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopic,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: NotAuthorized,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: NotAuthorized,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: NotAuthorized,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAuthorized,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLarge,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLarge,
    ErrorCode.PRODUCER_FENCED: Fenced,
    ErrorCode.INVALID_PRODUCER_EPOCH: Fenced,
    ErrorCode.FENCED_INSTANCE_ID: Fenced,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedByBroker,
}


def error_of(code: ErrorCode | int, message: str = "") -> BrokerError:
    """The exception for an error code of an answer; a code that is not known here is an unknown error of the server."""
    known = ErrorCode(code)
    if known != code:
        message = f"{message or 'the broker answered with an error'} (code {code}, which this client does not know)"
    return _KINDS.get(known, BrokerError)(known, message)
