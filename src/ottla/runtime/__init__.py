"""What the core is handed instead of reaching for the machine: a clock, a disk, an executor, ids.

The core (protocol, records, log, cluster, replication, broker/api ...) does no I/O of its own and reads no
clock, so that one seed can run a whole cluster in one process. This package holds the interfaces; the real
implementations are in `ottla.runtime.real` and `ottla.runtime.real_disk`, and the ones with faults in
`ottla.testing`.
"""

from ottla.runtime.clock import Clock
from ottla.runtime.disk import Disk, DiskLock, DiskSpace, File, FileRange
from ottla.runtime.executor import Executor
from ottla.runtime.ids import IdSource
from ottla.runtime.open_files import is_shortage
from ottla.runtime.workbench import Workbench, WorkbenchLost

__all__ = [
    "Clock",
    "Disk",
    "DiskLock",
    "DiskSpace",
    "Executor",
    "File",
    "FileRange",
    "IdSource",
    "Workbench",
    "WorkbenchLost",
    "is_shortage",
]
