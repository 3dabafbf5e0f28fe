"""How much processor time a process and everything it started have used, also what has ended since."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _FIRST_TIME, _LAST_TIME = 1, 11, 14


def _fields(process: int) -> list[str]:
    """What the kernel says of it, behind its name, which may have spaces."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _kind(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "gone"
    if words[0].endswith(b"java"):
        return "JVM"
    return next((word.decode() for word in words if word.startswith(b"pyspark.")), "driver")


def tree_processor_by_kind() -> dict[str, float]:
    """The same of this process and its descendants, by what they are: the JVM, workers by their module, the driver.
    What has ended is its parent's."""
    found: dict[str, float] = {}
    for process, ticks in _family_ticks(os.getpid()).items():
        found[_kind(process)] = found.get(_kind(process), 0.0) + ticks / _TICKS
    return found


def tree_processor_seconds(root: int | None = None) -> float:
    """User and system time of this process (or `root`) and its descendants."""
    return sum(_family_ticks(os.getpid() if root is None else root).values()) / _TICKS


def _family_ticks(root: int) -> dict[int, int]:
    known: dict[int, list[str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                known[int(entry)] = _fields(int(entry))
            except (OSError, IndexError):
                continue
    family = {root}
    while True:
        more = {process for process, fields in known.items() if int(fields[_PARENT]) in family} - family
        if not more:
            break
        family |= more
    return {
        process: sum(map(int, known[process][_FIRST_TIME : _LAST_TIME + 1])) for process in family if process in known
    }
