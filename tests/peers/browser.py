"""Chromium without a window, for tests of pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.peers.paths import PeerMissing

_NAMES = ("chromium", "chromium-browser", "google-chrome")
# It has a profile of its own, asks for nothing by itself, and may run as root.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SECONDS = 120.0


def browser() -> str | None:
    """The program, where there is one."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def drawn(url: str, profile: Path, *, after_ms: int) -> str:
    """The page's elements after so long, by the clock of the page, which does not wait for a busy machine."""
    program = browser()
    if program is None:
        raise PeerMissing("there is no Chromium: run `python -m tests.peers.install chromium`")
    done = subprocess.run(
        [program, *_FLAGS, f"--user-data-dir={profile}", f"--virtual-time-budget={after_ms}", "--dump-dom", url],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
