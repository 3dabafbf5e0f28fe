"""The hash of what a group reads; beside Kafka's own in tests/compat."""

from dataclasses import replace

from tests.unit.groups.consumer.rig import topic

from ottla.cluster.image import BrokerRegistration, ClusterImage
from ottla.groups.consumer.metadata_hash import MetadataHashes, topic_hash
from ottla.groups.consumer.xxh3 import xxh3_64


def image(*, rack: str | None = None, **counts: int) -> ClusterImage:
    brokers = {1: BrokerRegistration(1, (), rack, 0, b"")}
    return ClusterImage(brokers=brokers, topics={name: topic(name, count) for name, count in counts.items()})


def test_known_hashes() -> None:
    assert xxh3_64(b"") & 0xFFFFFFFFFFFFFFFF == 0x2D06800538D394C2
    assert len({xxh3_64(bytes(size)) for size in (1, 4, 9, 17, 129, 241, 1_025, 5_000)}) == 8


def test_whatever_matters_changes_it() -> None:
    hashes = MetadataHashes()
    first = hashes.of(["a"], image(a=1, b=1))
    assert hashes.of(["a"], image(a=1, b=2)) == first
    assert hashes.of(["a", "missing"], image(a=1, b=1)) == first
    changed = [hashes.of(["a"], image(a=2)), hashes.of(["a", "b"], image(a=1, b=1)), hashes.of([], image(a=1))]
    assert len({first, *changed}) == 4
    renewed = replace(topic("a", 1), topic_id=bytes(15) + b"\x09")
    assert topic_hash(renewed, image()) != topic_hash(topic("a", 1), image())
    assert topic_hash(topic("a", 1), image(rack="r")) != topic_hash(topic("a", 1), image())


def test_topics_that_are_gone_are_forgotten() -> None:
    hashes = MetadataHashes()
    hashes.of(["a", "b"], image(a=1, b=1))
    hashes.forget_gone(image(a=1))
    assert list(hashes._known) == ["a"]
