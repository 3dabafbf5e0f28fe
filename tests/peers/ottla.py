"""One Ottla broker as a process of its own, started the way a user starts it: `python -m ottla broker`."""

from __future__ import annotations

import os
import re
import sys

from tests.peers.paths import REPOSITORY
from tests.peers.process import ServerProcess

_READY = re.compile(r"^.*\bready on\b.*:(?P<port>\d+)\W*$", re.MULTILINE)


class OttlaBroker(ServerProcess):
    """The broker of this repository; without a `port` the first start takes a free one and later starts keep it."""

    name = "ottla"
    start_timeout_seconds = 120.0

    def prepare(self) -> None:
        self.data_directory.mkdir(exist_ok=True)

    def command(self) -> list[str]:
        settings = [part for key, value in self.properties.items() for part in ("--set", f"{key}={value}")]
        place = ["--data", str(self.data_directory), "--port", str(self.port or 0)]
        return [sys.executable, "-m", "ottla", "broker", *place, *settings]

    def environment(self) -> dict[str, str]:
        """The sources of this tree come first, and output is not held back: the ready line is waited for."""
        path = os.pathsep.join(part for part in (str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")) if part)
        return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}

    def is_ready(self) -> bool:
        """The ready line names the addresses clients are told; a port that was given stands, whatever they are told."""
        ready = _READY.search(self.log_since_start())
        if ready is None:
            return False
        self.port = self.port or int(ready["port"])
        return True
