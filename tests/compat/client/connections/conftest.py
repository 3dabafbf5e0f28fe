"""One secured Apache Kafka for all tests here."""

import pytest
from tests.peers.secured_kafka import SecuredKafka

pytest.register_assert_rewrite("tests.compat.client.connections.entering")


@pytest.fixture(scope="session")
def kafka(secured_kafka: SecuredKafka) -> SecuredKafka:
    return secured_kafka
