"""What is wrong with a record, said in the same words by the native code and by its pure twin."""

from ottla.client.errors import ConfigError, OttlaError, RecordTooLarge, SerializationError, WrongType
from ottla.protocol.errors import ErrorCode


def not_bytes(what: str, came: object) -> OttlaError:
    hint = "encode it" if what == "header" else f"encode it, or give the producer a {what}_serializer"
    return SerializationError(f"{what}: bytes expected, {type(came).__name__} came; {hint}")


def not_a_number(what: str, came: object) -> OttlaError:
    kind = SerializationError if isinstance(came, int) else WrongType
    return kind(f"{what}: a whole number of 64 bits expected, {came!r} came")


def not_a_time(came: object) -> OttlaError:
    hint = "; of seconds, as time.time() has them, write int(seconds * 1000)" if isinstance(came, float) else ""
    return WrongType(
        f"timestamp: milliseconds since 1970 as an int, or a datetime, expected, {came!r} of type "
        f"{type(came).__name__} came{hint}"
    )


def header_name(came: object) -> OttlaError:
    return SerializationError(f"header: a name that is a str expected, {type(came).__name__} came")


def header_shape(came: object) -> OttlaError:
    return SerializationError(f"headers: pairs of name and bytes, or a dict of them, expected, {came!r} came")


def timestamp_distance(base: int, came: int) -> OttlaError:
    return SerializationError(
        f"timestamp: {came} is too far from {base} for one batch; milliseconds since 1970 are expected"
    )


def negative_partition(came: int) -> OttlaError:
    return ConfigError(f"partition: 0 or more expected, {came} came; leave it out to let the key decide")


def record_too_large(size_bytes: int, limit_bytes: int) -> OttlaError:
    return RecordTooLarge(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the record may take {size_bytes} bytes, and {limit_bytes} are allowed; raise max.request.size and "
        "buffer.memory, and the topic's max.message.bytes with them, or send less",
    )


def short_key_column() -> OttlaError:
    return SerializationError("the key column's buffers are smaller than its rows need")


def broken_key_column(row: int) -> OttlaError:
    return SerializationError(f"row {row}: the key column's offsets point outside of its data")
