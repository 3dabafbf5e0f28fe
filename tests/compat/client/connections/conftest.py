"""One secured Apache Kafka for all tests here."""

from collections.abc import Iterator

import pytest
from tests.peers.certificates import Authority
from tests.peers.paths import PeerMissing
from tests.peers.secured_kafka import SecuredKafka

pytest.register_assert_rewrite("tests.compat.client.connections.entering")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    directory = tmp_path_factory.mktemp("secured")
    try:
        server = SecuredKafka(directory / "kafka", Authority(directory / "authority"))
    except PeerMissing as missing:
        pytest.skip(str(missing))
    with server:
        yield server
