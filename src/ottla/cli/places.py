"""Where `ottla cp` reads and writes: topics, and files of records.

| written                               | is                                                                       |
|---------------------------------------|--------------------------------------------------------------------------|
| `orders`, `topic:orders`              | a topic                                                                  |
| `orders.jsonl`, `.ndjson`, `.json`    | a file with a record in JSON a line                                      |
| `orders.parquet`                      | a Parquet file                                                           |
| `-`                                   | standard input or output, in JSON lines                                  |
| `file:records`, `data/records`        | a file with another name, in JSON lines                                  |
"""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ottla.cli.connecting import WrongUsage

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


class FileFormat(Enum):
    JSON_LINES = "jsonl"
    PARQUET = "parquet"


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
    if path.suffix.lower() == ".parquet":
        return FilePlace(path, FileFormat.PARQUET)
    if is_file or path.suffix.lower() in _JSON_SUFFIXES or "/" in text:
        return FilePlace(path, FileFormat.JSON_LINES)
    return TopicPlace(text)
