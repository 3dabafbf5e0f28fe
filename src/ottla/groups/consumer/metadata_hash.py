"""What a group knows of the topics it reads, as one number: when it changes, partitions have to be spread anew.

A topic's hash covers its id, its name and, for each partition, the racks of its replicas; a group's hash covers those
of its topics, in the order of their names. Both are Kafka's, so that a group moves between brokers without an epoch
that nobody needs.
"""

import struct
from collections.abc import Iterable

from ottla.cluster.image import ClusterImage, TopicImage
from ottla.groups.consumer.xxh3 import xxh3_64

NO_TOPICS = 0
_MAGIC = b"\x00"
_INT32 = struct.Struct("<i")
_INT64 = struct.Struct("<q")


def topic_hash(topic: TopicImage, image: ClusterImage) -> int:
    high, low = topic.topic_id[:8][::-1], topic.topic_id[8:][::-1]
    parts = [_MAGIC, high, low, _text(topic.name), _INT32.pack(len(topic.partitions))]
    for partition in topic.partitions:
        parts.append(_INT32.pack(partition.index))
        brokers = (image.brokers.get(node_id) for node_id in partition.replicas)
        racks = sorted(broker.rack for broker in brokers if broker is not None and broker.rack is not None)
        parts.extend(_INT32.pack(len(rack)) + _text(rack) for rack in racks)
    return xxh3_64(b"".join(parts))


def _text(text: str) -> bytes:
    data = text.encode("utf-16-le", "surrogatepass")
    return data + _INT32.pack(len(data) // 2)


class MetadataHashes:
    """Hashes of groups; those of topics are kept while the topic stays as it is."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, int]] = {}

    def of(self, topics: Iterable[str], image: ClusterImage) -> int:
        """The hash of a group that reads these topics. Those that do not exist do not count."""
        found = [image.topics[name] for name in sorted(topics) if name in image.topics]
        if not found:
            return NO_TOPICS
        return xxh3_64(b"".join(_INT64.pack(self._topic(topic, image)) for topic in found))

    def _topic(self, topic: TopicImage, image: ClusterImage) -> int:
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        value = topic_hash(topic, image)
        self._known[topic.name] = (topic, value)
        return value

    def forget_gone(self, image: ClusterImage) -> None:
        """Topics come and go; what is kept of them must not grow."""
        if len(self._known) > len(image.topics):
            self._known = {name: known for name, known in self._known.items() if name in image.topics}
