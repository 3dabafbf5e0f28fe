"""No producer id is given out twice: not to brokers that ask at once, not after a kill."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cluster.harness import SeededIds, running_cluster

from ottla.cluster import paths, registry
from ottla.cluster.layout import ensure_layout
from ottla.cluster.producer_ids import take_block
from ottla.coordination.embedded import EmbeddedStore
from ottla.protocol.errors import KafkaError

TAKER = """
import asyncio, sys
from ottla.cluster.layout import ensure_layout
from ottla.cluster.producer_ids import take_block
from ottla.coordination.embedded import EmbeddedStore
from ottla.runtime.real import SystemIds

async def main():
    store = await EmbeddedStore.open(sys.argv[1])
    await ensure_layout(store, SystemIds())
    while True:
        block = await take_block(store)
        print(block.first_id, block.size, flush=True)

asyncio.run(main())
"""


def test_brokers_that_ask_at_once_get_different_blocks(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path) as cluster:
            brokers = [await cluster.start(node_id) for node_id in range(3)]
            asked = (broker.controller.next_producer_id_block() for _ in range(10) for broker in brokers)
            blocks = await asyncio.gather(*asked)
            assert sorted(blocks) == [(number * 1000, 1000) for number in range(30)]

    asyncio.run(scenario())


def test_no_block_is_given_out_again_after_kill_9(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    given: list[int] = []
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", TAKER, path], stdout=subprocess.PIPE, text=True) as taker:
            assert taker.stdout is not None
            lines = [taker.stdout.readline() for _ in range(20)]
            taker.send_signal(signal.SIGKILL)
            lines += [line for line in taker.stdout if line.endswith("\n")]
        for line in lines:
            first_id, size = map(int, line.split())
            given.extend(range(first_id, first_id + size))
    assert len(given) == len(set(given)) >= 60_000


def test_ids_end_rather_than_wrap(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "store.sqlite3"))
        await ensure_layout(store, SeededIds())
        await store.set(paths.PRODUCER_IDS, registry.encode_counter("next_id", (1 << 63) - 1000))
        with pytest.raises(KafkaError, match="given out"):
            await take_block(store)
        await store.close()

    asyncio.run(scenario())
