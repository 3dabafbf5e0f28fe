"""Ottla: an event streaming platform for Python and PySpark people, speaking Kafka's protocol.

    from ottla import Producer, Consumer, Admin, AsyncProducer, AsyncConsumer, AsyncAdmin

Importing this package stays cheap: nothing heavy is loaded before it is used.
"""

from typing import TYPE_CHECKING

from ottla.version import __version__

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "OauthToken",
    "OttlaError",
    "Producer",
    "RecordMetadata",
    "TopicPartition",
    "__version__",
]

if TYPE_CHECKING:
    from ottla.client.admin.admin import AsyncAdmin
    from ottla.client.consumer.consumer import AsyncConsumer
    from ottla.client.errors import OttlaError
    from ottla.client.producer.producer import AsyncProducer
    from ottla.client.security.oauth import OauthToken
    from ottla.client.sync.admin import Admin
    from ottla.client.sync.consumer import Consumer
    from ottla.client.sync.producer import Producer
    from ottla.client.types import RecordMetadata, TopicPartition

_HOMES = {
    "Admin": "ottla.client.sync.admin",
    "AsyncAdmin": "ottla.client.admin.admin",
    "AsyncConsumer": "ottla.client.consumer.consumer",
    "AsyncProducer": "ottla.client.producer.producer",
    "Consumer": "ottla.client.sync.consumer",
    "OauthToken": "ottla.client.security.oauth",
    "OttlaError": "ottla.client.errors",
    "Producer": "ottla.client.sync.producer",
    "RecordMetadata": "ottla.client.types",
    "TopicPartition": "ottla.client.types",
}


def __getattr__(name: str) -> object:
    """The clients are loaded when they are first asked for (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
