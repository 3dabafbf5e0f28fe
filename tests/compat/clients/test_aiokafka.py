"""aiokafka, unchanged."""

from __future__ import annotations

from tests.compat.clients.adapters.aio import AiokafkaClient
from tests.compat.clients.contract import AdminContract


class TestAiokafka(AdminContract):
    adapter = AiokafkaClient
