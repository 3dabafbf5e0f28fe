"""confluent-kafka, unchanged."""

from __future__ import annotations

from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.contract import AdminContract


class TestConfluentKafka(AdminContract):
    adapter = ConfluentClient
