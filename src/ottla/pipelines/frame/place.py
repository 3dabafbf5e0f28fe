"""Where a pipeline runs: its brokers, its source, its directory."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Begin = Literal["published", "anew"]

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_address(data: str | Path) -> bool:
    """Whether it is one that Spark writes to, such as `hdfs://name/path`, and no path of this machine."""
    return _ADDRESS.match(str(data)) is not None


def absolute(data: str) -> str:
    """The same wherever it is read: a path is one of this process's directory, an address stays as it is."""
    return data if is_address(data) else str(Path(data).expanduser().absolute())


@dataclass(frozen=True)
class Place:
    """`data` holds checkpoints and the lake: a directory, or an address that Spark can write to. `most_per_batch` is
    the most records that one micro-batch of a query takes from its source. `client` is what else clients need to reach
    the brokers, by Kafka's names: security, above all. `begin` puts aside the checkpoints that are there: queries go on
    from the offsets that the pipeline has published, or begin anew."""

    bootstrap: str
    data: str | Path
    source: str = "ottla"
    most_per_batch: int | None = None
    client: Mapping[str, object] = field(default_factory=dict)
    begin: Begin | None = None

    @property
    def brokers(self) -> dict[str, object]:
        """Settings of any client, by Kafka's names."""
        return {**self.client, "bootstrap.servers": self.bootstrap}

    @property
    def spark_options(self) -> dict[str, str]:
        """The same for Spark's sources and sinks."""
        return {f"kafka.{name}": str(value) for name, value in self.brokers.items()}

    def checkpoint(self, pipeline: str, query: str) -> str:
        return f"{self.data}/checkpoints/{pipeline}/{query}"

    def lake(self, pipeline: str, table: str) -> str:
        return f"{self.data}/lake/{pipeline}/{table}"

    def lake_path(self, pipeline: str, table: str) -> str:
        """The same as a path of this machine, and of all that run tasks."""
        return self.lake(pipeline, table).removeprefix("file://")
