"""All tests here use the shared broker, and none may leave it broken for the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.compat.clients.tools import Tools
from tests.compat.suites.left_out import served_apis, words
from tests.peers.process import ServerProcess

from ottla.protocol.api_keys import ApiKey

pytest.register_assert_rewrite("tests.compat.clients.contract")


@pytest.fixture(autouse=True)
def broker_survives(broker: ServerProcess) -> Iterator[None]:
    """A test that ends the broker fails, alone: the next one gets it restarted."""
    if not broker.running:
        broker.start()
    yield
    assert broker.running, broker.describe("ended during the test")


@pytest.fixture(scope="module")
def tools(broker: ServerProcess) -> Iterator[Tools]:
    """Kafka's tools, for the broker of these tests."""
    started = Tools(broker.bootstrap)
    yield started
    started.close()


@pytest.fixture
def needs(broker: ServerProcess) -> Callable[[ApiKey], None]:
    """Skips a test until the broker serves an API, and no longer."""

    def skip_without(api: ApiKey) -> None:
        assert broker.port is not None
        if api not in served_apis(broker.port):
            pytest.skip(f"API not served: {words(api)}")

    return skip_without
