"""A store whose answers get lost: what happened is found out, nothing happens twice, no one is told a lie."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from tests.unit.cluster.harness import SeededIds

from ottla.cluster.broker_lifecycle import BrokerLifecycle
from ottla.cluster.controller import Controller
from ottla.cluster.image import Endpoint
from ottla.cluster.metadata import MetadataCache
from ottla.cluster.requests import AlterConfigsRequest, ConfigChange, NewPartitions, NewTopic
from ottla.coordination.embedded import EmbeddedStore
from ottla.coordination.store import ANY_VERSION, ConnectionLost, Operation
from ottla.protocol.errors import ErrorCode

OK = ErrorCode.NONE


class LossyStore(EmbeddedStore):
    """Loses what it is told to: the next writes themselves, or only the answers to them."""

    lost_writes = 0
    lost_answers = 0
    lost_answer_number = -1
    """Counts down with every write; the answer to the one that makes it 0 is lost."""

    async def transact(self, operations: Sequence[Operation]) -> None:
        self._lose_write()
        await super().transact(operations)
        self._lose_answer()

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        self._lose_write()
        result = await super().set(path, data, version)
        self._lose_answer()
        return result

    def _lose_write(self) -> None:
        if self.lost_writes:
            self.lost_writes -= 1
            raise ConnectionLost("the request was lost")

    def _lose_answer(self) -> None:
        self.lost_answer_number -= 1
        if self.lost_answer_number == 0:
            raise ConnectionLost("the answer was lost")
        if self.lost_answers:
            self.lost_answers -= 1
            raise ConnectionLost("the answer was lost")


def with_lossy_store(
    directory: Path,
    scenario: Callable[[LossyStore, Controller, MetadataCache], Awaitable[None]],
    lost_answer_number: int = -1,
) -> None:
    async def run() -> None:
        store = await LossyStore.open(str(directory / "store.sqlite3"))
        assert isinstance(store, LossyStore)
        store.lost_answer_number = lost_answer_number
        metadata = MetadataCache(store)
        controller = Controller(store, metadata, node_id=0, ids=SeededIds())
        lifecycle = BrokerLifecycle(
            store,
            metadata,
            controller,
            node_id=0,
            endpoints=(Endpoint("PLAINTEXT", "localhost", 9092),),
            ids=SeededIds(),
        )
        async with asyncio.timeout(60.0):
            await lifecycle.start()
        await scenario(store, controller, metadata)
        await lifecycle.shutdown()
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["lost_writes", "lost_answers"])
@pytest.mark.parametrize("times", [1, 3])
def test_requests_succeed_once_whatever_was_lost(tmp_path: Path, kind: str, times: int) -> None:
    async def scenario(store: LossyStore, controller: Controller, metadata: MetadataCache) -> None:
        def lose() -> None:
            setattr(store, kind, times)

        lose()
        results = await controller.create_topics([NewTopic("a", 2, 1), NewTopic("b", 1, 1), NewTopic("a b", 1, 1)])
        assert [result.error for result in results] == [OK, OK, ErrorCode.INVALID_TOPIC_EXCEPTION]
        assert {name: topic.topic_id for name, topic in metadata.image.topics.items()} == {
            result.name: result.topic_id for result in results[:2]
        }
        lose()
        [grown] = await controller.create_partitions([NewPartitions("a", 5)])
        assert grown.error == OK
        assert len(metadata.image.topics["a"].partitions) == 5
        lose()
        [altered] = await controller.alter_topic_configs([AlterConfigsRequest("a", (ConfigChange("flush.ms", "1"),))])
        assert altered.error == OK
        assert metadata.image.topics["a"].configs == {"flush.ms": "1"}
        lose()
        deleted = await controller.delete_topics(["a", metadata.image.topics["b"].topic_id])
        assert [(result.name, result.error) for result in deleted] == [("a", OK), ("b", OK)]
        assert metadata.image.topics == {}

    with_lossy_store(tmp_path, scenario)


def test_a_store_that_never_answers_is_reported_and_nothing_hangs(tmp_path: Path) -> None:
    async def scenario(store: LossyStore, controller: Controller, metadata: MetadataCache) -> None:
        store.lost_writes = 1000
        [result] = await controller.create_topics([NewTopic("a", 1, 1)])
        assert result.error == ErrorCode.REQUEST_TIMED_OUT
        store.lost_writes = 0
        [result] = await controller.create_topics([NewTopic("a", 1, 1)])
        assert result.error == OK

    with_lossy_store(tmp_path, scenario)


def test_producer_ids_are_wasted_rather_than_given_out_twice(tmp_path: Path) -> None:
    async def scenario(store: LossyStore, controller: Controller, metadata: MetadataCache) -> None:
        assert await controller.next_producer_id_block() == (0, 1000)
        store.lost_answers = 1
        assert await controller.next_producer_id_block() == (2000, 1000)
        store.lost_writes = 1
        assert await controller.next_producer_id_block() == (3000, 1000)

    with_lossy_store(tmp_path, scenario)


@pytest.mark.parametrize("number", range(1, 6))
def test_a_broker_joins_whichever_answer_is_lost(tmp_path: Path, number: int) -> None:
    """Layout, registration, election, admission: one write each, and one more for luck."""

    async def scenario(store: LossyStore, controller: Controller, metadata: MetadataCache) -> None:
        assert controller.is_active
        assert controller.epoch == metadata.image.controller_epoch == 1
        assert metadata.image.brokers[0].is_active
        [result] = await controller.create_topics([NewTopic("a", 1, 1)])
        assert result.error == OK
        assert store.lost_answer_number <= 0, "the answer was never lost"

    with_lossy_store(tmp_path, scenario, lost_answer_number=number)
