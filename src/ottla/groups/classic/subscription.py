"""Which topics the members of a group read, as far as the broker can see."""

import struct
from collections.abc import Iterable

from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

_VERSION = struct.Struct(">h")


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics in what consumers say when they join; None if one of them cannot be read.

    Every version begins with what version 0 has, so that is read whatever the version, as Kafka does.
    """
    topics: set[str] = set()
    for data in metadata:
        if len(data) < _VERSION.size:
            return None
        (version,) = _VERSION.unpack_from(data)
        if version < 0:
            return None
        try:
            topics.update(ConsumerProtocolSubscription.decode(data, 0, _VERSION.size, exact=False).topics)
        except MalformedMessage:
            return None
    return frozenset(topics)
