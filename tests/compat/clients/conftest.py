"""All tests here use the shared broker, and none may leave it broken for the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.peers.process import ServerProcess

pytest.register_assert_rewrite("tests.compat.clients.contract")


@pytest.fixture(autouse=True)
def broker_survives(broker: ServerProcess) -> Iterator[None]:
    """A test that ends the broker fails, alone: the next one gets it restarted."""
    if not broker.running:
        broker.start()
    yield
    assert broker.running, broker.describe("ended during the test")
