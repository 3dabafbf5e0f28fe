"""Times as Kafka stamps records: whole milliseconds since 1970, UTC."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds_of(moment: datetime) -> int:
    """Exact, unlike floats. A datetime without a zone is local time, as `datetime.timestamp` has it."""
    if moment.tzinfo is None:
        # Subclasses differ: pandas takes its own for UTC.
        moment = datetime(
            moment.year,
            moment.month,
            moment.day,
            moment.hour,
            moment.minute,
            moment.second,
            moment.microsecond,
            fold=moment.fold,
        ).astimezone(UTC)
    return (moment - _EPOCH) // _MILLISECOND
