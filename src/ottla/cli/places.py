"""Where `ottla cp` reads and writes: topics, and files of records.

| written                               | is                                                                       |
|---------------------------------------|--------------------------------------------------------------------------|
| `orders`, `topic:orders`              | a topic                                                                  |
| `orders.jsonl`, `.ndjson`, `.json`    | a file with a record in JSON a line                                      |
| `orders.parquet`                      | a Parquet file                                                           |
| `orders.csv`                          | a CSV file, which is only written                                        |
| `-`                                   | standard input or output, in JSON lines                                  |
| `file:records`, `data/records`        | a file with another name, in JSON lines                                  |
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ottla.cli.connecting import WrongUsage


class FileFormat(Enum):
    JSON_LINES = "jsonl"
    PARQUET = "parquet"
    CSV = "csv"


_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_SUFFIXES = dict.fromkeys(_JSON_SUFFIXES, FileFormat.JSON_LINES) | {
    ".parquet": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
}
# Of other formats and of compressed files: JSON lines under such a name would mislead.
_OTHER_SUFFIXES = frozenset(
    [
        ".arrow",
        ".avro",
        ".bz2",
        ".feather",
        ".gz",
        ".lz4",
        ".orc",
        ".parq",
        ".snappy",
        ".tsv",
        ".xls",
        ".xlsx",
        ".xz",
        ".zip",
        ".zst",
    ]
)


@dataclass(frozen=True, slots=True)
class TopicPlace:
    name: str

    def __str__(self) -> str:
        return f"topic {self.name}"


@dataclass(frozen=True, slots=True)
class FilePlace:
    """`path` is None for standard input or output."""

    path: Path | None
    format: FileFormat

    def __str__(self) -> str:
        return "-" if self.path is None else str(self.path)


Place = TopicPlace | FilePlace


def parse_place(text: str) -> Place:
    if text == "-":
        return FilePlace(None, FileFormat.JSON_LINES)
    kind, separator, rest = text.partition(":")
    if separator and kind == "topic":
        if not rest:
            raise WrongUsage(f"{text!r} names no topic")
        return TopicPlace(rest)
    is_file = separator and kind == "file"
    path = Path(rest if is_file else text)
    suffix = path.suffix.lower()
    if suffix in _SUFFIXES:
        return FilePlace(path, _SUFFIXES[suffix])
    if not is_file and "/" not in text:
        return TopicPlace(text)
    if suffix in _OTHER_SUFFIXES:
        raise WrongUsage(f"{text}: {suffix} is no format of ottla cp; there are {', '.join(sorted(_SUFFIXES))}")
    return FilePlace(path, FileFormat.JSON_LINES)
