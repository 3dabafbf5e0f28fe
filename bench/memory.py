"""Memory that the host has really given to this machine.

In a virtual machine, the first touch of a page that the host has not backed yet costs about ten times as much as the
write that touches it, and pages that were freed a while ago are taken back. A log of gigabytes touches fresh pages all
the time, so without this both brokers measure the host, at the same 0.5 GB/s, and not themselves. A machine that has
run for a day has its memory; this makes it so for the seconds of a measurement, for both sides alike.
"""

from __future__ import annotations

from mmap import mmap

from bench.settings import MIB


def touch(size_bytes: int) -> None:
    """Use that much memory and free it at once, so that whoever asks next gets pages that are backed."""
    if size_bytes <= 0:
        return
    filler = b"x" * MIB
    with mmap(-1, size_bytes) as area:
        for position in range(0, size_bytes - MIB + 1, MIB):
            area[position : position + MIB] = filler
