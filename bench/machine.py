"""Facts about the machine and the versions; nothing that names a host, a user or a place on the disk."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from tests.peers.paths import KAFKA_VERSION

import ottla


def machine_facts() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "java": _java_version(),
        "ottla": ottla.__version__,
        "kafka": KAFKA_VERSION,
        "confluent-kafka": _package_version("confluent-kafka"),
        "uvloop": _package_version("uvloop"),
    }


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Ticks of all cores since the machine started, from the first line of /proc/stat."""

    total: int
    idle: int
    stolen: int

    @classmethod
    def now(cls) -> Self:
        ticks = [int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return cls(sum(ticks), ticks[3] + ticks[4], ticks[7])


def busy_share(seconds: float) -> float:
    """How much of all cores is in use while this process does nothing: what the run would have to share with."""
    before = ProcessorTime.now()
    time.sleep(seconds)
    after = ProcessorTime.now()
    return 1 - (after.idle - before.idle) / max(1, after.total - before.total)


def stolen_share(since: ProcessorTime) -> float:
    """How much of all cores the host of a virtual machine gave to others."""
    now = ProcessorTime.now()
    return (now.stolen - since.stolen) / max(1, now.total - since.total)


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1) if found else platform.machine()


def _java_version() -> str:
    try:
        said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    except FileNotFoundError:
        return "none"
    found = re.search(r'version "([^"]+)"', said)
    return found.group(1) if found else "unknown"


def _package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
