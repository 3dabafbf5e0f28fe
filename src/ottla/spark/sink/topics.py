"""Whether the topic of the option `topic` exists: asked in the driver, so that a misspelt name fails there, at once and
by name, and not in every task after a minute of waiting."""

from functools import lru_cache

from ottla.client.errors import BrokerUnavailable, UnknownTopic
from ottla.client.sync.producer import Producer
from ottla.protocol.errors import ErrorCode
from ottla.spark import clients
from ottla.spark.sink.options import SinkOptions

# How long a broker that creates topics by itself may take for one.
_CREATION_MS = 3_000
_MOST_KNOWN = 256


def check_topic(options: SinkOptions) -> None:
    """Raise UnknownTopic where there is none and brokers do not create it. A topic that was found is not looked for
    again by this process."""
    if options.topic is not None:
        _find(options.topic, tuple(options.connection_settings("driver").items()))


@lru_cache(_MOST_KNOWN)
def _find(topic: str, connection: tuple[tuple[str, object], ...]) -> None:
    settings = dict(connection)
    try:
        found = clients.admin(settings).describe_topics(topic)
    except BrokerUnavailable as error:
        raise BrokerUnavailable(
            f"no broker of option kafka.bootstrap.servers={settings['bootstrap.servers']} answers: start it, or "
            f"correct the option ({error})"
        ) from None
    if isinstance(found.errors.get(topic), UnknownTopic):
        _let_brokers_create(topic, settings)
    else:
        found.raise_for_errors()


def _let_brokers_create(topic: str, settings: dict[str, object]) -> None:
    """Asking as a producer creates it where `auto.create.topics.enable` is on."""
    try:
        with Producer(config={**settings, "max.block.ms": _CREATION_MS}) as producer:
            producer.partitions_for(topic)
    except UnknownTopic:
        raise UnknownTopic(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic} of option topic does not exist, and the brokers do not create topics by themselves "
            "(auto.create.topics.enable): create it, or correct the option",
        ) from None
