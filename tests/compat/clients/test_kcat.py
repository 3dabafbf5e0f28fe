"""kcat, unchanged."""

from __future__ import annotations

from tests.compat.clients.adapters.kcat import KcatClient
from tests.compat.clients.contract import ClientContract


class TestKcat(ClientContract):
    adapter = KcatClient
