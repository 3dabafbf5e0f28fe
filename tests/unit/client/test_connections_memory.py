"""Memory of answers: used again, but never while somebody looks at it."""

from ottla.client.connections_memory import KEPT_BYTES, KEPT_PIECES, WORTH_KEEPING_BYTES, FrameMemory

SIZE = WORTH_KEEPING_BYTES


def test_memory_that_nobody_looks_at_is_used_again() -> None:
    memory = FrameMemory()
    first = memory.lend(SIZE + 5)
    piece = first.obj
    assert len(first) == SIZE + 5
    first.release()
    assert memory.lend(SIZE).obj is piece


def test_memory_is_not_used_again_while_a_view_of_it_lives() -> None:
    memory = FrameMemory()
    first = memory.lend(SIZE)
    records = first[10:20]
    records[:] = b"0123456789"
    first.release()
    for _ in range(2 * KEPT_PIECES):
        memory.lend(SIZE)[:] = bytes(SIZE)
    assert bytes(records) == b"0123456789"


def test_small_answers_do_not_hold_large_memory() -> None:
    memory = FrameMemory()
    memory.lend(20 * SIZE).release()
    for size in (SIZE, 10):
        piece = memory.lend(size).obj
        assert isinstance(piece, bytearray)
        assert len(piece) < 2 * size


def test_what_is_kept_is_bounded() -> None:
    memory = FrameMemory()
    for size in (SIZE, KEPT_BYTES // 2, KEPT_BYTES, 2 * KEPT_BYTES, SIZE, SIZE):
        memory.lend(size).release()
        assert len(memory._kept) <= KEPT_PIECES
        assert sum(map(len, memory._kept)) <= KEPT_BYTES
