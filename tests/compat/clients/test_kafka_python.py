"""kafka-python, unchanged."""

from __future__ import annotations

from tests.compat.clients.adapters.kafka_python import KafkaPythonClient
from tests.compat.clients.contract import AdminContract


class TestKafkaPython(AdminContract):
    adapter = KafkaPythonClient
