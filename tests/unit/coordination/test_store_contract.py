"""What every coordination store must do, whichever it is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.coordination.backends import Backend, EmbeddedBackend

from ottla.coordination.store import (
    ANY_VERSION,
    MAX_NODE_BYTES,
    BadVersion,
    Check,
    Create,
    Delete,
    Event,
    EventKind,
    InvalidArgument,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SessionExpired,
    Set,
    Store,
    StoreError,
)

CREATED, CHANGED, DELETED, RESYNC = EventKind.CREATED, EventKind.CHANGED, EventKind.DELETED, EventKind.RESYNC


@pytest.fixture(params=[EmbeddedBackend])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    made: Backend = request.param(tmp_path)
    return made


@asynccontextmanager
async def sessions(backend: Backend, count: int) -> AsyncIterator[list[Store]]:
    try:
        yield [await backend.session() for _ in range(count)]
    finally:
        await backend.close()


def with_store(backend: Backend, scenario: Callable[[Store], Awaitable[None]]) -> None:
    async def run() -> None:
        async with sessions(backend, 1) as [store]:
            await scenario(store)

    asyncio.run(run())


def with_two(backend: Backend, scenario: Callable[[Store, Store], Awaitable[None]]) -> None:
    async def run() -> None:
        async with sessions(backend, 2) as [one, other]:
            await scenario(one, other)

    asyncio.run(run())


class Heard:
    """Events of one watch, and a way to wait for the next ones."""

    def __init__(self, store: Store, path: str) -> None:
        self.events: list[Event] = []
        self._news = asyncio.Event()
        self.watch = store.watch(path, self._hear)

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, count: int) -> list[Event]:
        async with asyncio.timeout(60.0):
            while len(self.events) < count:
                self._news.clear()
                await self._news.wait()
        return self.events


def test_a_node_is_read_as_it_was_written(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        await store.create("/a", b"\x00\xff data")
        node = await store.get("/a")
        assert (node.path, node.data, node.version, node.is_ephemeral) == ("/a", b"\x00\xff data", 0, False)
        assert node.created_id == node.modified_id > 0

    with_store(backend, scenario)


def test_every_write_adds_one_to_the_version_and_newer_commits_have_larger_ids(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        await store.create("/a")
        assert await store.set("/a", b"1", 0) == 1
        assert await store.set("/a", b"2", ANY_VERSION) == 2
        node = await store.get("/a")
        assert (node.data, node.version) == (b"2", 2)
        assert node.modified_id > node.created_id
        await store.create("/b")
        assert (await store.get("/b")).created_id > node.modified_id

    with_store(backend, scenario)


def test_a_node_that_is_created_again_starts_at_version_0_under_a_larger_id(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        await store.create("/a")
        before = await store.get("/a")
        await store.set("/a", b"x")
        await store.delete("/a", 1)
        await store.create("/a")
        after = await store.get("/a")
        assert after.version == 0
        assert after.created_id > before.created_id

    with_store(backend, scenario)


def test_a_stale_version_is_refused_and_changes_nothing(backend: Backend) -> None:
    async def scenario(one: Store, other: Store) -> None:
        await one.create("/a", b"first")
        seen = await other.get("/a")
        await one.set("/a", b"second", 0)
        with pytest.raises(BadVersion) as refused:
            await other.set("/a", b"third", seen.version)
        assert refused.value.path == "/a"
        with pytest.raises(BadVersion):
            await other.delete("/a", seen.version)
        assert (await one.get("/a")).data == b"second"

    with_two(backend, scenario)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Create("/a"), NodeExists),
        (Create("/missing/child"), NoNode),
        (Set("/missing", b""), NoNode),
        (Delete("/missing"), NoNode),
        (Check("/missing"), NoNode),
        (Check("/a", 7), BadVersion),
        (Delete("/a"), NotEmpty),
        (Create("/ephemeral/child"), NoChildrenForEphemerals),
    ],
)
def test_what_does_not_hold_is_refused_with_its_own_error(
    backend: Backend, operation: Operation, expected: type[StoreError]
) -> None:
    async def scenario(store: Store) -> None:
        await store.create("/a")
        await store.create("/a/child")
        await store.create("/ephemeral", is_ephemeral=True)
        before = await store.read_tree("/")
        with pytest.raises(expected) as refused:
            await store.transact([operation])
        assert refused.value.path == operation.path
        assert refused.value.operation_index == 0
        assert await store.read_tree("/") == before

    with_store(backend, scenario)


def test_reading_what_is_not_there(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        await store.create("/a", b"x")
        with pytest.raises(NoNode):
            await store.get("/missing")
        with pytest.raises(NoNode):
            await store.children("/missing")
        assert await store.read_tree("/missing") == []
        found = await store.get_many(["/missing", "/a"])
        assert found[0] is None
        assert found[1] is not None
        assert found[1].data == b"x"

    with_store(backend, scenario)


def test_children_and_trees_do_not_take_in_neighbours_with_a_common_beginning(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        for path in ("/t", "/t/b", "/t/a", "/t/a/1", "/t-2", "/t-2/x", "/t.3", "/t0"):
            await store.create(path, path.encode())
        assert await store.children("/t") == ["a", "b"]
        assert [node.path for node in await store.read_tree("/t")] == ["/t", "/t/a", "/t/a/1", "/t/b"]
        assert set(await store.children("/")) >= {"t", "t-2", "t.3", "t0"}
        assert {node.path for node in await store.read_tree("/")} >= {"/", "/t/a/1", "/t-2/x"}

    with_store(backend, scenario)


def test_a_transaction_is_all_or_nothing(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        await store.create("/a", b"old")
        with pytest.raises(BadVersion) as refused:
            await store.transact([Set("/a", b"new", 0), Create("/b"), Delete("/b", 9)])
        assert refused.value.operation_index == 2
        assert (await store.get("/a")).data == b"old"
        assert await store.get_many(["/b"]) == [None]
        await store.transact([Check("/a", 0), Set("/a", b"new", 0), Create("/b"), Create("/b/c"), Delete("/b/c")])
        assert (await store.get("/a")).version == 1
        assert await store.children("/b") == []

    with_store(backend, scenario)


def test_operations_of_a_transaction_see_those_before_them(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        await store.transact([Create("/a"), Set("/a", b"1", 0), Check("/a", 1), Delete("/a", 1), Create("/a", b"2")])
        node = await store.get("/a")
        assert (node.data, node.version) == (b"2", 0)

    with_store(backend, scenario)


def test_of_many_that_compare_and_set_each_step_one_wins(backend: Backend) -> None:
    async def add_one(store: Store) -> None:
        while True:
            node = await store.get("/counter")
            try:
                await store.set("/counter", str(int(node.data) + 1).encode(), node.version)
                return
            except BadVersion:
                continue

    async def scenario(one: Store, other: Store) -> None:
        await one.create("/counter", b"0")
        await asyncio.gather(*(add_one(store) for store in (one, other) for _ in range(10)))
        node = await one.get("/counter")
        assert (node.data, node.version) == (b"20", 20)

    with_two(backend, scenario)


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/a/./b", "/a/..", "/a\n", "/a\x00"])
def test_paths_that_no_store_takes(backend: Backend, path: str) -> None:
    async def scenario(store: Store) -> None:
        with pytest.raises(InvalidArgument):
            await store.create(path)
        with pytest.raises(InvalidArgument):
            await store.get(path)

    with_store(backend, scenario)


def test_data_has_a_limit_alone_and_together(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        await store.create("/full", bytes(MAX_NODE_BYTES))
        assert len((await store.get("/full")).data) == MAX_NODE_BYTES
        with pytest.raises(InvalidArgument):
            await store.create("/over", bytes(MAX_NODE_BYTES + 1))
        half = bytes(MAX_NODE_BYTES // 2 + 1)
        with pytest.raises(InvalidArgument):
            await store.transact([Create("/half", half), Create("/other", half)])
        with pytest.raises(InvalidArgument):
            await store.set("/", b"x")
        assert await store.get_many(["/over", "/half", "/other"]) == [None, None, None]

    with_store(backend, scenario)


def test_an_ephemeral_node_goes_with_its_session_and_others_see_it_go(backend: Backend) -> None:
    async def scenario(one: Store, other: Store) -> None:
        await one.create("/members")
        await one.create("/members/one", is_ephemeral=True)
        await other.create("/members/other", is_ephemeral=True)
        assert (await other.get("/members/one")).is_ephemeral
        heard = Heard(other, "/members")
        await one.close()
        assert await heard.until(1) == [Event(DELETED, "/members/one")]
        assert await other.children("/members") == ["other"]

    with_two(backend, scenario)


def test_an_expired_session_is_over_until_another_is_opened(backend: Backend) -> None:
    async def scenario(one: Store, other: Store) -> None:
        expired: list[bool] = []
        one.on_session_expired(lambda: expired.append(True))
        heard = Heard(one, "/members")
        await one.create("/members")
        await one.create("/members/one", is_ephemeral=True)
        await heard.until(2)
        first_session = one.session_id
        await backend.expire(one)
        assert expired == [True]
        assert await other.children("/members") == []
        for call in (one.get("/members"), one.create("/x"), one.transact([Delete("/members")])):
            with pytest.raises(SessionExpired):
                await call
        await one.reopen()
        assert one.session_id not in (first_session, other.session_id)
        assert (await heard.until(3))[2:] == [Event(RESYNC, "/members")]
        await one.create("/members/one", is_ephemeral=True)
        assert await other.children("/members") == ["one"]
        assert (await heard.until(4))[3:] == [Event(CREATED, "/members/one")]

    with_two(backend, scenario)


def test_a_watch_hears_of_a_node_and_all_below_it_in_the_order_of_commits(backend: Backend) -> None:
    async def scenario(one: Store, other: Store) -> None:
        heard = Heard(other, "/a")
        await one.create("/a")
        await one.create("/ab")
        await one.transact([Create("/a/b"), Create("/a/b/c"), Set("/a", b"x")])
        await one.delete("/a/b/c")
        await one.set("/ab", b"not watched")
        await one.set("/a/b", b"y")
        assert await heard.until(6) == [
            Event(CREATED, "/a"),
            Event(CREATED, "/a/b"),
            Event(CREATED, "/a/b/c"),
            Event(CHANGED, "/a"),
            Event(DELETED, "/a/b/c"),
            Event(CHANGED, "/a/b"),
        ]

    with_two(backend, scenario)


def test_a_read_after_an_event_sees_the_change(backend: Backend) -> None:
    async def scenario(one: Store, other: Store) -> None:
        heard = Heard(other, "/a")
        await one.create("/a", b"0")
        for value in range(1, 20):
            await asyncio.gather(heard.until(value), one.set("/a", str(value).encode()))
            assert int((await other.get("/a")).data) >= value - 1
        await heard.until(20)
        assert (await other.get("/a")).data == b"19"

    with_two(backend, scenario)


def test_refused_writes_and_checks_make_no_events(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        await store.create("/a")
        heard = Heard(store, "/")
        with pytest.raises(NodeExists):
            await store.transact([Set("/a", b"x"), Create("/a")])
        await store.transact([Check("/a", 0)])
        await store.create("/end")
        assert await heard.until(1) == [Event(CREATED, "/end")]

    with_store(backend, scenario)


def test_a_closed_watch_is_silent_even_when_closed_by_another_listener(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        closing = store.watch("/a", lambda event: heard.watch.close())
        heard = Heard(store, "/a")
        last = Heard(store, "/a")
        await store.create("/a")
        await last.until(1)
        closing.close()
        await store.set("/a", b"x")
        await last.until(2)
        assert heard.events == []

    with_store(backend, scenario)


def test_a_listener_that_raises_does_not_keep_others_from_hearing(backend: Backend) -> None:
    async def scenario(store: Store) -> None:
        reported: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["message"]))

        def fail(event: Event) -> None:
            raise RuntimeError("listener")

        store.watch("/a", fail)
        heard = Heard(store, "/a")
        await store.create("/a")
        await heard.until(1)
        assert len(reported) == 1

    with_store(backend, scenario)
