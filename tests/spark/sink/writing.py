"""How the tests of the sink write frames and look at what is in the topics afterwards."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.spark.conftest import Target, require_connector
from tests.waiting import until_settled

from ottla import Consumer


class Stored(NamedTuple):
    """A record as a consumer sees it. Sorts by partition and offset."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def options_of(target: Target, **options: object) -> dict[str, str]:
    """Underscores stand for dots in `kafka_...` options."""
    dotted = {
        name.replace("_", ".") if name.startswith("kafka_") else name: str(value) for name, value in options.items()
    }
    return {"kafka.bootstrap.servers": target.bootstrap, **dotted}


def write(frame: Any, name: str, target: Target, **options: object) -> None:
    """A batch write with one format or the other."""
    require_connector(name)
    frame.write.format(name).mode("append").options(**options_of(target, **options)).save()


def stored(target: Target, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list[Stored]:
    """Everything that is in a topic now, in its order."""
    if isolation == "read_committed":
        until_settled(target.bootstrap)
    with Consumer(target.bootstrap, isolation_level=isolation) as consumer:
        consumer.assign([(topic, number, 0) for number in range(partitions)])
        table = consumer.to_arrow()
    return sorted(
        Stored(
            row["partition"],
            row["offset"],
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in table.to_pylist()
    )


def values(target: Target, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list[bytes]:
    """Sorted, so that batches and partitions do not matter."""
    return sorted(record.value or b"" for record in stored(target, topic, partitions, isolation))
