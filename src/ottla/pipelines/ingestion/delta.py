"""The lake as a Delta table: the same Parquet files under a second log, in Delta's format (`_delta_log`).

Delta's version N says what the lake's commit N says; version 0 only what a table is. So there is nothing to decide, and
nothing that two writers could decide in two ways: whoever has published a commit writes the versions that are missing,
in their order, each as a whole and only where nobody was faster. A writer that is killed leaves Delta a version behind
until the next commit; readers of Delta then see the lake as it was before.

Every twentieth version there is a checkpoint, so that readers need not begin at the first one. The table has the oldest
protocol, which every reader of Delta knows. Only Ottla writes to it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ottla.pipelines.ingestion.durable import create_whole, sync
from ottla.pipelines.ingestion.state import FOLDERS

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.pipelines.ingestion.state import Commit, LakeFile, LakeState

LOG = "_delta_log"
_DIGITS = 20
_READER, _WRITER = 1, 2
_HEADER = {
    "type": "struct",
    "fields": [
        {"name": "key", "type": "string", "nullable": True, "metadata": {}},
        {"name": "value", "type": "binary", "nullable": True, "metadata": {}},
    ],
}
_COLUMNS: dict[str, Any] = {
    "key": "binary",
    "value": "binary",
    "headers": {"type": "array", "elementType": _HEADER, "containsNull": True},
    "partition": "integer",
    "offset": "long",
    "timestamp": "timestamp",
    "topic": "string",
    "date": "date",
    "hour": "integer",
}

Action = dict[str, Any]


class DeltaLog:
    """Delta's log of one lake."""

    def __init__(self, lake: Path) -> None:
        self._directory = lake / LOG

    @property
    def is_kept(self) -> bool:
        """Whether the lake is a Delta table, too."""
        return self._path(0).exists()

    def create(self, now_ms: int) -> None:
        """Make the lake a Delta table, which has no files yet."""
        self._directory.mkdir(parents=True, exist_ok=True)
        sync(self._directory.parent)
        create_whole(self._path(0), _lines(_head(now_ms)))

    def follow(self, version: int, commit_of: Callable[[int], tuple[Commit, int]]) -> None:
        """Write what is missing up to `version`. `commit_of` tells a commit of the lake, and when it was made."""
        last = version
        while not self._path(last).exists():
            last -= 1
        for missing in range(last + 1, version + 1):
            commit, time_ms = commit_of(missing)
            create_whole(self._path(missing), _lines(_actions(commit, time_ms)))

    def checkpoint(self, state: LakeState, time_ms: int) -> None:
        """All that is in the table at the state's version, in one file. It is only for speed: one that is lost costs
        readers some time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        head = [json.loads(line) for line in self._path(0).read_text(encoding="utf-8").splitlines()]
        rows = [*head, *({"add": _add(file, time_ms, is_new=True)} for file in state.files.values())]
        draft = self._directory / f".{uuid.uuid4().hex}.draft"
        pq.write_table(pa.Table.from_pylist(rows, schema=_checkpoint_schema()), draft)
        sync(draft)
        draft.rename(self._directory / f"{state.version:0{_DIGITS}}.checkpoint.parquet")
        draft.write_text(json.dumps({"version": state.version, "size": len(rows)}), encoding="utf-8")
        draft.rename(self._directory / "_last_checkpoint")

    def _path(self, version: int) -> Path:
        return self._directory / f"{version:0{_DIGITS}}.json"


def _lines(actions: Iterable[Action]) -> str:
    return "".join(f"{json.dumps(action)}\n" for action in actions)


def _head(now_ms: int) -> list[Action]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _COLUMNS.items()]
    return [
        {"protocol": {"minReaderVersion": _READER, "minWriterVersion": _WRITER}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": list(FOLDERS),
                "configuration": {},
                "createdTime": now_ms,
            }
        },
    ]


def _actions(commit: Commit, time_ms: int) -> list[Action]:
    """A commit without offsets puts other files in the place of some, with the same rows, or says which are to be
    deleted: nothing is new then."""
    is_new = bool(commit.covered)
    operation = "WRITE" if is_new else "OPTIMIZE" if commit.added else "VACUUM"
    return [
        {"commitInfo": {"timestamp": time_ms, "operation": operation, "operationParameters": {}}},
        *(
            {"remove": {"path": _address(path), "deletionTimestamp": time_ms, "dataChange": is_new}}
            for path in commit.removed
        ),
        *({"add": _add(file, time_ms, is_new)} for file in commit.added),
    ]


def _add(file: LakeFile, time_ms: int, is_new: bool) -> Action:
    """`time_ms` is for files of before, whose entries do not say when they were written."""
    return {
        "path": _address(file.path),
        "partitionValues": {name: getattr(file, name) for name in FOLDERS},
        "size": file.size,
        "modificationTime": file.written_ms or time_ms,
        "dataChange": is_new,
        "stats": json.dumps({"numRecords": file.rows}),
    }


def _address(path: str) -> str:
    return quote(path, safe="/=")


def _checkpoint_schema() -> pa.Schema:
    import pyarrow as pa

    texts = pa.map_(pa.string(), pa.string())
    protocol = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
    kind = pa.struct([("provider", pa.string()), ("options", texts)])
    table = pa.struct(
        [
            ("id", pa.string()),
            ("format", kind),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", texts),
            ("createdTime", pa.int64()),
        ]
    )
    file = pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", texts),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
        ]
    )
    return pa.schema([("protocol", protocol), ("metaData", table), ("add", file)])
