"""How much processor time a process and everything it started have used, also what has ended since."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _FIRST_TIME, _LAST_TIME = 1, 11, 14


def _fields(process: int) -> list[str]:
    """What the kernel says of it, behind its name, which may have spaces."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def tree_processor_seconds(root: int | None = None) -> float:
    """User and system time of this process (or `root`) and its descendants."""
    known: dict[int, list[str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                known[int(entry)] = _fields(int(entry))
            except (OSError, IndexError):
                continue
    family = {os.getpid() if root is None else root}
    while True:
        more = {process for process, fields in known.items() if int(fields[_PARENT]) in family} - family
        if not more:
            break
        family |= more
    ticks = sum(int(value) for process in family for value in known[process][_FIRST_TIME : _LAST_TIME + 1])
    return ticks / _TICKS
