"""Kafka's own Java clients, unchanged, of the two generations in use."""

from __future__ import annotations

from tests.compat.clients.adapters.java import Java39Client, Java43Client
from tests.compat.clients.contract import AdminContract


class TestJava39(AdminContract):
    adapter = Java39Client


class TestJava43(AdminContract):
    adapter = Java43Client
