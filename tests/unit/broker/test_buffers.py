from ottla.broker.buffers import GRAIN_BYTES, KEPT_BYTES, BufferPool


def test_buffers_are_at_least_as_large_as_asked_for() -> None:
    pool = BufferPool(1 << 30)
    for size_bytes in (1, GRAIN_BYTES, GRAIN_BYTES + 1, 5 * GRAIN_BYTES):
        buffer = pool.lend(size_bytes)
        assert buffer is not None
        assert size_bytes <= len(buffer) <= max(GRAIN_BYTES, 2 * size_bytes)
        pool.give_back(buffer)
    assert pool.lent_bytes == 0


def test_a_buffer_that_came_back_is_lent_again() -> None:
    pool = BufferPool(1 << 30)
    first = pool.lend(1000)
    assert first is not None
    pool.give_back(first)
    assert pool.lend(2000) is first
    assert pool.lend(2000) is not first


def test_nothing_is_lent_above_the_limit_until_something_comes_back() -> None:
    pool = BufferPool(2 * GRAIN_BYTES)
    first, second = pool.lend(1), pool.lend(1)
    assert first is not None
    assert second is not None
    assert pool.lend(1) is None
    pool.give_back(first)
    assert pool.lend(1) is not None


def test_a_request_above_the_limit_passes_alone() -> None:
    pool = BufferPool(GRAIN_BYTES)
    large = pool.lend(10 * GRAIN_BYTES)
    assert large is not None
    assert pool.lend(1) is None
    pool.give_back(large)
    small = pool.lend(1)
    assert small is not None
    assert pool.lend(10 * GRAIN_BYTES) is None


def test_what_is_kept_for_reuse_is_bounded() -> None:
    pool = BufferPool(1 << 40)
    size_bytes = KEPT_BYTES // 2
    lent = [pool.lend(size_bytes) for _ in range(4)]
    for buffer in lent:
        assert buffer is not None
        pool.give_back(buffer)
    again = [pool.lend(size_bytes) for _ in range(4)]
    assert sum(any(buffer is old for old in lent) for buffer in again) == 2
