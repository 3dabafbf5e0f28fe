"""Indexes of closed segments come and go; reads are right all the time."""

import asyncio

from tests.unit.log.support import START_MS, Rig, append, batch_of, read_all

from ottla.log.config import LogConfig
from ottla.log.index_cache import IndexCache
from ottla.records import read_header


class Holder:
    def __init__(self) -> None:
        self.dropped = False

    def drop_indexes(self) -> None:
        self.dropped = True


def test_the_least_recently_used_go_first() -> None:
    cache = IndexCache(100)
    first, second, third = Holder(), Holder(), Holder()
    cache.admit(first, 40)
    cache.admit(second, 40)
    cache.touch(first)
    cache.admit(third, 40)
    assert [holder.dropped for holder in (first, second, third)] == [False, True, False]
    assert cache.used_bytes == 80
    cache.forget(first)
    cache.forget(first)
    cache.touch(first)
    assert cache.used_bytes == 40


def test_the_newest_stays_even_if_it_is_too_large() -> None:
    cache = IndexCache(10)
    small, large = Holder(), Holder()
    cache.admit(small, 5)
    cache.admit(large, 50)
    assert (small.dropped, large.dropped) == (True, False)


def test_admitting_twice_counts_once() -> None:
    cache = IndexCache(100)
    holder = Holder()
    cache.admit(holder, 30)
    cache.admit(holder, 50)
    assert cache.used_bytes == 50


def test_a_reader_of_everything_stays_within_the_limit() -> None:
    async def run() -> None:
        rig = Rig(LogConfig(segment_bytes=1500, index_interval_bytes=100))
        rig.index_cache_bytes = 400
        log = await rig.open()
        for number in range(200):
            await append(log, batch_of([b"v" * 20], timestamp=START_MS + number))
        log = await rig.restart()
        assert len(log.segments) > 8
        content = read_all(log, 500)
        for offset in (0, 150, 20, 120, 60, 199):
            found = log.read(offset, 1, up_to_offset=200)
            assert found is not None
            assert read_header(found.read()).base_offset == offset
        assert read_all(log, 500) == content
        loaded = [segment for segment in log.segments[:-1] if segment.has_indexes_in_memory]
        assert 0 < len(loaded) < 4

    asyncio.run(run())
