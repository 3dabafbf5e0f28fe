from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_clients_left() -> Iterator[None]:
    """What this process keeps for its next task is closed, as when Spark ends a process."""
    yield
    from ottla.spark import clients

    for name in list(clients._clients):
        clients.forget(name)
