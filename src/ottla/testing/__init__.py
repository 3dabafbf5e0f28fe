"""For tests: a broker inside the test process with faults on demand, and stand-ins for the machine.

`TestBroker` is for people who test code that talks to Kafka; docs/TESTING.md is its guide. The others (a disk that
crashes, a clock that is set by hand, dice with a seed) are what Ottla's own core is tested with.

Nothing is loaded before it is used: pytest imports this package on every start, for its plugin.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.protocol.errors import ErrorCode, KafkaError
    from ottla.testing.broker import TestBroker
    from ottla.testing.faults import Faults
    from ottla.testing.memory_disk import MemoryDisk, MemoryFile
    from ottla.testing.observer import StoredRecord
    from ottla.testing.runtime import InlineExecutor, ManualClock, MovableClock, SeededIds

__all__ = [
    "ErrorCode",
    "Faults",
    "InlineExecutor",
    "KafkaError",
    "ManualClock",
    "MemoryDisk",
    "MemoryFile",
    "MovableClock",
    "SeededIds",
    "StoredRecord",
    "TestBroker",
]

_HOMES = {
    "ErrorCode": "ottla.protocol.errors",
    "Faults": "ottla.testing.faults",
    "InlineExecutor": "ottla.testing.runtime",
    "KafkaError": "ottla.protocol.errors",
    "ManualClock": "ottla.testing.runtime",
    "MemoryDisk": "ottla.testing.memory_disk",
    "MemoryFile": "ottla.testing.memory_disk",
    "MovableClock": "ottla.testing.runtime",
    "SeededIds": "ottla.testing.runtime",
    "StoredRecord": "ottla.testing.observer",
    "TestBroker": "ottla.testing.broker",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
