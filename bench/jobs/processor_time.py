"""How much processor time a process and everything it started have used, also what has ended since."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _FIRST_TIME, _LAST_TIME = 1, 11, 14


def _fields(process: int) -> list[str]:
    """What the kernel says of it, behind its name, which may have spaces."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def command_line(process: int) -> bytes:
    """Empty where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def kind_of(process: int) -> str:
    """What it is: the JVM, a Python process of Spark's by its module, the broker, or the driver."""
    words = command_line(process).split(b"\0")
    if words[0].endswith(b"java"):
        return "JVM"
    if b"broker" in words:
        return "broker"
    return next((word.decode() for word in words if word.startswith(b"pyspark.")), "driver")


def tree_processor_by_kind() -> dict[str, float]:
    """The same of this process and its descendants, by what they are: the JVM, workers by their module, the driver.
    What has ended is its parent's."""
    found: dict[str, float] = {}
    for process, ticks in _family_ticks(os.getpid()).items():
        found[kind_of(process)] = found.get(kind_of(process), 0.0) + ticks / _TICKS
    return found


def tree_processor_seconds(root: int | None = None) -> float:
    """User and system time of this process (or `root`) and its descendants."""
    return sum(_family_ticks(os.getpid() if root is None else root).values()) / _TICKS


def family(root: int) -> dict[int, int]:
    """The process and its descendants, each with its parent."""
    return {process: int(fields[_PARENT]) for process, fields in _family_fields(root).items()}


def _family_ticks(root: int) -> dict[int, int]:
    return {
        process: sum(map(int, fields[_FIRST_TIME : _LAST_TIME + 1])) for process, fields in _family_fields(root).items()
    }


def _family_fields(root: int) -> dict[int, list[str]]:
    known: dict[int, list[str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                known[int(entry)] = _fields(int(entry))
            except (OSError, IndexError):
                continue
    found = {root}
    while True:
        more = {process for process, fields in known.items() if int(fields[_PARENT]) in found} - found
        if not more:
            break
        found |= more
    return {process: known[process] for process in sorted(found) if process in known}
