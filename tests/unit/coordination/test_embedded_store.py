"""What is particular to the store in a file: it survives a kill, it is locked, it serves one thread of callers fast."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.coordination.database import Database, StoreLocked
from ottla.coordination.embedded import EmbeddedStore
from ottla.coordination.store import Create, NodeExists, Set, StoreError

# Writes in transactions of two operations, says so after each acknowledgement, and never stops by itself.
WRITER = """
import asyncio, sys
from ottla.coordination.embedded import EmbeddedStore
from ottla.coordination.store import Create, Set

async def main():
    store = await EmbeddedStore.open(sys.argv[1])
    node = (await store.get_many(["/last"]))[0]
    if node is None:
        await store.transact([Create("/last", b"-1"), Create("/writes")])
        number = -1
    else:
        number = int(node.data)
    await store.create("/alive", is_ephemeral=True)
    while True:
        number += 1
        data = str(number).encode()
        await store.transact([Create(f"/writes/{number}", data * 50), Set("/last", data)])
        print(number, flush=True)

asyncio.run(main())
"""

# Meets a disk that takes no more, then one that does again.
FULL_DISK = """
import asyncio, resource, signal, sys
from ottla.coordination.embedded import EmbeddedStore
from ottla.coordination.store import StoreError

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = await EmbeddedStore.open(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    refused = None
    for number in range(20):
        try:
            await store.create(f"/{number}", bytes(50_000))
            print(number)
        except StoreError as error:
            refused = number
            break
    assert refused is not None, "the limit was never met"
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.create("/after", b"works again")
    print("after")
    await store.close()

asyncio.run(main())
"""


def test_every_acknowledged_write_survives_kill_9(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    acknowledged = -1
    for lines_before_the_kill in (1, 40, 150):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True, bufsize=1
        ) as writer:
            assert writer.stdout is not None
            for _ in range(lines_before_the_kill):
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))])

        asyncio.run(check_writes(path, acknowledged))


async def check_writes(path: str, acknowledged: int) -> None:
    store = await EmbeddedStore.open(path)
    try:
        last = int((await store.get("/last")).data)
        assert last >= acknowledged
        names = {int(name) for name in await store.children("/writes")}
        assert names == set(range(last + 1)), "a transaction is there whole or not at all"
        found = await store.get_many([f"/writes/{number}" for number in range(last + 1)])
        expected = [str(number).encode() * 50 for number in range(last + 1)]
        assert [node.data for node in found if node is not None] == expected
        assert await store.get_many(["/alive"]) == [None], "no session outlives its process"
    finally:
        await store.close()


def test_a_full_disk_refuses_writes_and_loses_none_that_were_acknowledged(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    done = subprocess.run([sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    acknowledged = done.stdout.split()

    async def look() -> None:
        store = await EmbeddedStore.open(path)
        try:
            assert sorted(await store.children("/")) == sorted(acknowledged)
        finally:
            await store.close()

    asyncio.run(look())


def test_what_was_written_is_there_after_closing_and_ids_go_on_growing(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")

    async def write() -> tuple[int, int]:
        store = await EmbeddedStore.open(path)
        await store.create("/kept", b"data")
        await store.set("/kept", b"more")
        await store.create("/session", is_ephemeral=True)
        await store.create("/deleted")
        last_id = (await store.get("/deleted")).created_id
        await store.delete("/deleted")
        await store.close()
        return last_id, store.session_id

    async def read(last_id: int, session_id: int) -> None:
        store = await EmbeddedStore.open(path)
        node = await store.get("/kept")
        assert (node.data, node.version) == (b"more", 1)
        assert await store.children("/") == ["kept"]
        assert store.session_id > session_id
        await store.create("/new")
        assert (await store.get("/new")).created_id > last_id
        await store.close()

    asyncio.run(read(*asyncio.run(write())))


def test_a_file_in_use_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")

    async def scenario() -> None:
        store = await EmbeddedStore.open(path)
        with pytest.raises(StoreLocked, match="in use by another process"):
            await EmbeddedStore.open(path)
        await store.create("/still", b"works")
        await store.close()
        again = await EmbeddedStore.open(path)
        assert (await again.get("/still")).data == b"works"
        await again.close()

    asyncio.run(scenario())


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    path.write_bytes(b"something else entirely, long enough to look like a header" * 100)
    with pytest.raises(StoreError, match="damaged or no store"):
        asyncio.run(EmbeddedStore.open(str(path)))
    with pytest.raises(StoreError, match="cannot be opened"):
        asyncio.run(EmbeddedStore.open(str(tmp_path / "missing" / "store.sqlite3")))


def test_a_file_of_a_later_release_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="layout 99"):
        asyncio.run(EmbeddedStore.open(path))


def test_writes_that_wait_together_are_each_on_their_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "store.sqlite3"))
        await store.create("/odd")
        writes = [
            store.transact([Create(f"/{number}"), Create("/odd" if number % 2 else f"/even{number}")])
            for number in range(100)
        ]
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [isinstance(outcome, NodeExists) for outcome in outcomes] == [bool(number % 2) for number in range(100)]
        expected = {"odd"} | {name for number in range(0, 100, 2) for name in (str(number), f"even{number}")}
        assert set(await store.children("/")) == expected
        await store.close()

    asyncio.run(scenario())


def test_the_synchronous_mode_makes_commits_durable(tmp_path: Path) -> None:
    """The settings that durability stands on, asked of sqlite itself."""
    database = Database(str(tmp_path / "store.sqlite3"))
    try:
        ask = database._connection.execute
        assert ask("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert ask("PRAGMA synchronous").fetchone()[0] == 2
    finally:
        database.close()


def test_several_sessions_share_a_file_that_closes_with_the_last(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")

    async def scenario() -> None:
        one = await EmbeddedStore.open(path)
        other = await one.new_session()
        await one.create("/a", b"1")
        await one.close()
        await other.set("/a", b"2")
        with pytest.raises(StoreLocked):
            await EmbeddedStore.open(path)
        await other.transact([Set("/a", b"3")])
        await other.close()
        await other.close()
        again = await EmbeddedStore.open(path)
        assert (await again.get("/a")).data == b"3"
        await again.close()

    asyncio.run(scenario())
