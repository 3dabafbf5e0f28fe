"""Memory that a task frees is kept for what comes next.

A task makes and frees a few megabytes for every table that it reads or writes. Memory of that size the C library gives
back to the kernel each time, and asks it for again: the kernel then clears every page once more, which took a third of
the time of a read. So a worker's C library is told to keep some.
"""

import ctypes
from functools import cache
from typing import Final

# Names and numbers are those of <malloc.h>; the first is the most that it allows.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_LARGEST_KEPT_BYTES: Final = 32 * 1024 * 1024
_KEPT_BYTES: Final = 64 * 1024 * 1024


@cache
def keep_freed_memory() -> bool:
    """Keep up to 64 MB in this process. Whether the C library does so: those other than glibc are left as they are."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES) and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
