"""The cache follows the store, tells its listeners, and lets others wait for what they need."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.unit.cluster.harness import SeededIds, registration_of

from ottla.cluster import paths, registry
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.cluster.layout import ensure_layout
from ottla.cluster.metadata import MetadataCache, MetadataClosed
from ottla.cluster.registry import CorruptNode
from ottla.coordination.embedded import EmbeddedStore
from ottla.coordination.store import Create, Set


def topic_operations(name: str) -> list[Create]:
    topic_id = name.encode().ljust(16, b"-")
    partitions = [PartitionImage(0, 1, 0, (1,), (1,), 0)]
    return [
        Create(paths.topic(name), registry.encode_topic(topic_id, [(1,)])),
        Create(paths.topic_state(name, 0), registry.encode_state(topic_id, 1, partitions)),
    ]


def has_topic(name: str) -> Callable[[ClusterImage], bool]:
    return lambda image: name in image.topics


def with_cache(directory: Path, scenario: Callable[[EmbeddedStore, MetadataCache], Awaitable[None]]) -> None:
    """A cache on one session, and another session for the writes of others."""

    async def run() -> None:
        async with asyncio.timeout(60.0):
            writer = await EmbeddedStore.open(str(directory / "store.sqlite3"))
            reader = await writer.new_session()
            await ensure_layout(writer, SeededIds())
            metadata = MetadataCache(reader)
            await metadata.start()
            try:
                await scenario(writer, metadata)
            finally:
                await metadata.close()
                await reader.close()
                await writer.close()

    asyncio.run(run())


def test_what_others_write_arrives_without_asking(tmp_path: Path) -> None:
    async def scenario(writer: EmbeddedStore, metadata: MetadataCache) -> None:
        await writer.transact(topic_operations("orders"))
        await writer.create(paths.broker(1), registry.encode_broker(registration_of(1)), is_ephemeral=True)
        image = await metadata.wait_for(lambda image: "orders" in image.topics and 1 in image.brokers)
        assert image.brokers[1].endpoint("PLAINTEXT") is not None
        assert image.brokers[1].endpoint("SSL") is None
        await writer.close()
        assert 1 not in (await metadata.wait_for(lambda image: not image.brokers)).brokers

    with_cache(tmp_path, scenario)


def test_listeners_get_every_image_with_the_one_before_it(tmp_path: Path) -> None:
    async def scenario(writer: EmbeddedStore, metadata: MetadataCache) -> None:
        heard: list[tuple[ClusterImage, ClusterImage]] = []
        first = metadata.image
        unsubscribe = metadata.subscribe(lambda old, new: heard.append((old, new)))
        for number in range(5):
            await writer.transact(topic_operations(f"t{number}"))
            await metadata.wait_for(has_topic(f"t{number}"))
        images = [old for old, _ in heard] + [heard[-1][1]]
        assert images[0] is first
        assert all(new is following for (_, new), following in zip(heard, images[1:], strict=True))
        versions = [image.version for image in images]
        assert versions == list(range(first.version, first.version + len(images)))
        unsubscribe()
        count = len(heard)
        await writer.transact(topic_operations("unheard"))
        await metadata.wait_for(has_topic("unheard"))
        assert len(heard) == count

    with_cache(tmp_path, scenario)


def test_a_listener_that_raises_stops_nothing(tmp_path: Path) -> None:
    async def scenario(writer: EmbeddedStore, metadata: MetadataCache) -> None:
        reported: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["message"]))

        def fail(old: ClusterImage, new: ClusterImage) -> None:
            raise RuntimeError("listener")

        metadata.subscribe(fail)
        for name in ("a", "b"):
            await writer.transact(topic_operations(name))
            await metadata.wait_for(has_topic(name))
        assert reported

    with_cache(tmp_path, scenario)


def test_refresh_reads_at_once_what_was_written(tmp_path: Path) -> None:
    async def scenario(writer: EmbeddedStore, metadata: MetadataCache) -> None:
        operations = topic_operations("t")
        await writer.transact(operations)
        image = await metadata.refresh([operation.path for operation in operations])
        assert "t" in image.topics
        assert metadata.image is image

    with_cache(tmp_path, scenario)


def test_waiting_for_a_version(tmp_path: Path) -> None:
    async def scenario(writer: EmbeddedStore, metadata: MetadataCache) -> None:
        version = metadata.image.version
        assert await metadata.wait_for(version) is metadata.image
        waiting = asyncio.create_task(metadata.wait_for(version + 1))
        await writer.transact(topic_operations("t"))
        assert (await waiting).version == version + 1

    with_cache(tmp_path, scenario)


def test_a_wait_that_cannot_end_ends_with_the_cache(tmp_path: Path) -> None:
    async def scenario(writer: EmbeddedStore, metadata: MetadataCache) -> None:
        waiting = asyncio.create_task(metadata.wait_for(lambda image: False))
        await asyncio.sleep(0)
        await metadata.close()
        with pytest.raises(MetadataClosed):
            await waiting

    with_cache(tmp_path, scenario)


def test_after_a_lost_session_everything_is_read_again(tmp_path: Path) -> None:
    async def scenario(writer: EmbeddedStore, metadata: MetadataCache) -> None:
        await writer.transact(topic_operations("before"))
        await metadata.wait_for(has_topic("before"))
        kept = metadata.image.topics["before"]
        reader = metadata._store
        assert isinstance(reader, EmbeddedStore)
        await reader.expire()
        await writer.transact(topic_operations("missed"))
        await reader.reopen()
        image = await metadata.wait_for(has_topic("missed"))
        assert image.topics["before"] is kept
        await writer.transact(topic_operations("after"))
        await metadata.wait_for(has_topic("after"))

    with_cache(tmp_path, scenario)


def test_a_store_that_cannot_be_understood_is_refused_at_the_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "store.sqlite3"))
        await ensure_layout(store, SeededIds())
        await store.transact(topic_operations("t"))
        await store.set(paths.topic("t"), b"garbage")
        with pytest.raises(CorruptNode, match="/topics/t"):
            await MetadataCache(store).start()
        await store.close()

    asyncio.run(scenario())


def test_a_node_that_becomes_garbage_later_leaves_the_image_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(writer: EmbeddedStore, metadata: MetadataCache) -> None:
        await writer.transact(topic_operations("t"))
        await metadata.wait_for(has_topic("t"))
        await writer.transact([Set(paths.topic("t"), b"garbage"), *topic_operations("u")])
        image = await metadata.wait_for(has_topic("u"))
        assert "t" in image.topics
        assert "/topics/t" in caplog.text

    with_cache(tmp_path, scenario)


def test_the_layout_is_made_once_even_by_brokers_that_start_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = await EmbeddedStore.open(str(tmp_path / "store.sqlite3"))
        sessions = [first, *[await first.new_session() for _ in range(4)]]
        cluster_ids = await asyncio.gather(
            *(ensure_layout(session, SeededIds(seed)) for seed, session in enumerate(sessions))
        )
        assert len(set(cluster_ids)) == 1
        assert len(cluster_ids[0]) == 22
        await first.set(paths.PRODUCER_IDS, registry.encode_counter("next_id", 5000))
        assert await ensure_layout(first, SeededIds(9)) == cluster_ids[0]
        assert registry.decode_counter(await first.get(paths.PRODUCER_IDS), "next_id") == 5000
        for session in sessions:
            await session.close()

    asyncio.run(scenario())
