"""Stand-ins for the machine, for tests: a disk that crashes, a clock that is set by hand, dice with a seed."""

from ottla.testing.memory_disk import MemoryDisk, MemoryFile
from ottla.testing.runtime import InlineExecutor, ManualClock, SeededIds

__all__ = ["InlineExecutor", "ManualClock", "MemoryDisk", "MemoryFile", "SeededIds"]
