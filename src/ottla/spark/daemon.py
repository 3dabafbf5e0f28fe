"""The process that Spark's Python workers are forked from, in the place of `pyspark.daemon`.

    spark.python.daemon.module = ottla.spark.daemon

Spark's own daemon loads nothing before it forks, so each worker imports PySpark, Arrow and the client anew; and it
collects garbage after every task, over all objects of all modules, which takes longer than a small task does. This one
imports once, before it forks; and what is there after a task is taken out of the collector's sight (`gc.freeze`), so
that the next collection looks at the objects of one task. Real garbage of tasks is looked for every so often.

Spark disconnects from a worker whose rows it does not need to the end. Its own daemon prints a traceback then; here the
worker ends without a word.
"""

import gc
import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from pyspark import daemon

_TASKS_A_COLLECTION: Final = 200
# By the module that the workers of a daemon run: what they need for their first task. None of them starts a thread of
# Python's; those of Arrow's allocator and of NumPy's linear algebra are prepared for a fork by their libraries.
_NEEDED: Final = {
    "pyspark.worker": ("pyarrow", "ottla.spark.datasource", "ottla.spark.source.stream", "ottla.spark.source.tasks"),
}
# Any code but 0 ends a worker.
_DISCONNECTED: Final = 1
_ALWAYS: Final = ("ottla.spark.datasource",)

Worker = Callable[[Any, bool], int]


def preload(module: str) -> None:
    """Import the module that workers run, and what it will need. What is missing here is missed where it is used."""
    for name in (module, *_NEEDED.get(module, _ALWAYS)):
        with suppress(ImportError):
            importlib.import_module(name)


def sparing(worker: Worker) -> Worker:
    """The same, with all that there is after a task out of the garbage collector's sight. A worker from which Spark has
    disconnected is to end."""
    tasks = 0

    def work(socket: Any, authenticated: bool) -> int:
        nonlocal tasks
        try:
            code = worker(socket, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return _DISCONNECTED
        tasks += 1
        if tasks % _TASKS_A_COLLECTION == 0:
            gc.unfreeze()
            gc.collect()
        gc.freeze()
        return code

    return work


def main() -> None:
    preload(sys.argv[1] if len(sys.argv) > 1 else "pyspark.worker")
    gc.collect()
    gc.freeze()
    daemon.worker = sparing(daemon.worker)  # type: ignore[assignment]  # the same arguments
    daemon.manager()


if __name__ == "__main__":
    main()
