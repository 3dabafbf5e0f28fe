"""One broker for all tests of the APIs; each test has topics of its own.

With `--target=kafka` it is Apache Kafka: what a test expects there, it may expect here.
"""

from collections.abc import Iterator

import pytest
from tests.broker_thread import BrokerThread
from tests.conftest import start_broker
from tests.wire_client import WireClient


@pytest.fixture(scope="session")
def api_port(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    directory = tmp_path_factory.mktemp("apis")
    if target == "ottla":
        with BrokerThread(directory) as broker:
            yield broker.port
        return
    server = start_broker(target, directory)
    assert server.port is not None
    yield server.port
    server.stop()


@pytest.fixture
def client(api_port: int) -> Iterator[WireClient]:
    with WireClient(api_port) as connected:
        yield connected


@pytest.fixture
def ottla_only(target: str) -> None:
    """For what Ottla does in its own way; docs/COMPATIBILITY.md says why."""
    if target != "ottla":
        pytest.skip("Ottla's own way")
