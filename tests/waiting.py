"""Asking again until something holds, on a machine that may be busy."""

import time
from collections.abc import Iterator, Mapping

PATIENCE_SECONDS = 60.0


def tries(seconds: float = PATIENCE_SECONDS, pause_seconds: float = 0.005) -> Iterator[int]:
    """Numbers of attempts, with a pause between them; it ends when the time is over, after one attempt at least."""
    deadline = time.monotonic() + seconds
    number = 0
    while True:
        yield number
        number += 1
        if time.monotonic() >= deadline:
            return
        time.sleep(pause_seconds)


def until_settled(bootstrap: str | None = None, *, config: Mapping[str, object] | None = None) -> None:
    """Until every transaction whose end was decided has ended in its partitions, and readers of committed records see
    it. Apache Kafka answers when the decision is kept; the markers follow."""
    from ottla import Admin

    with Admin(bootstrap, config=config) as admin:
        for _ in tries():
            deciding = admin.list_transactions(states=["PrepareCommit", "PrepareAbort"])
            if not deciding:
                return
    raise AssertionError(f"not ended: {deciding}")
