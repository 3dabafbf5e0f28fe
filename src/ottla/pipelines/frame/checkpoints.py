"""What pipelines keep beside Spark's own checkpoints: their layout, and where the lake's numbers began.

The state in a checkpoint fits one shape of query. That of another version is never read: it is recognised by its
layout, and refused with what to do. All of it goes through Hadoop's file systems, as Spark's checkpoints do.
"""

import json
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.frame.telling import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYOUT: Final = 2
_NOTE = "ottla.json"


class OtherLayout(PipelineError):
    """A checkpoint was written by another version of Ottla."""


class Checkpoint:
    """That of one query; `directory` is Spark's."""

    def __init__(self, spark: "SparkSession", directory: str) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path(directory)
        self._files = self._path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        self.directory = directory

    def prepare(self, next_numbers: dict[str, int]) -> dict[str, int]:
        """Where the lake's numbers begin for this query, by table: as it was when the checkpoint was new, which is now
        where there is none. OtherLayout where it is not one of this version."""
        note = self._jvm.org.apache.hadoop.fs.Path(self._path, _NOTE)
        if self._files.exists(note):
            found = json.loads(self._read(note))
            if found.get("layout") != LAYOUT:
                raise self._refused(f"layout {found.get('layout')!r}", self._path.getName())
            begun: dict[str, int] = found["lake"]
            missing = {table: number for table, number in next_numbers.items() if table not in begun}
            if not missing:
                return begun
            next_numbers = {**begun, **missing}
        else:
            self.check_all()
        self._write(note, json.dumps({"layout": LAYOUT, "lake": next_numbers}))
        return next_numbers

    def move_to(self, name: str) -> str | None:
        """The whole folder of the pipeline, to that name beside it; None where there is none."""
        folder = self._path
        if not self._files.exists(folder):
            return None
        target = self._jvm.org.apache.hadoop.fs.Path(folder.getParent(), name)
        if not self._files.rename(folder, target):
            raise PipelineError(f"the checkpoints in {folder.toUri().getPath()} could not be moved to {name}")
        return str(target.toUri().getPath())

    def check_all(self) -> None:
        """Those of all queries of the pipeline, also of queries that only an earlier version had."""
        parent = self._path.getParent()
        if not self._files.exists(parent):
            return
        for one in self._files.listStatus(parent):
            there = one.getPath()
            if self._has_begun(there) and not self._files.exists(self._jvm.org.apache.hadoop.fs.Path(there, _NOTE)):
                raise self._refused("no layout", there.getName())

    def _has_begun(self, checkpoint: Any) -> bool:
        """Whether it has the offsets of a batch. A driver that was killed while it noted its first batch leaves a
        hidden file there."""
        offsets = self._jvm.org.apache.hadoop.fs.Path(checkpoint, "offsets")
        return self._files.exists(offsets) and any(
            not one.getPath().getName().startswith(".") for one in self._files.listStatus(offsets)
        )

    def _refused(self, found: str, name: str) -> OtherLayout:
        parent = self._path.getParent()
        return OtherLayout(
            f"the checkpoints in {parent.toUri().getPath()} were written by another version of Ottla ({name} has "
            f"{found}, this version has layout {LAYOUT}), and cannot be read. Start once with --begin published to go "
            "on from the offsets that it has published (what it had counted until then is not in later answers), or "
            "with --begin anew to work off all that the topics have; both put the old checkpoints aside"
        )

    def _read(self, path: Any) -> str:
        stream = self._files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _write(self, path: Any, text: str) -> None:
        """As a whole or not at all."""
        hidden = path.suffix(".tmp")
        stream = self._files.create(hidden, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if not self._files.rename(hidden, path):
            self._files.delete(path, False)
            self._files.rename(hidden, path)
