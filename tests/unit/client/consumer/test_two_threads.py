"""The prefetch with a taker in another thread: nothing is lost, nothing comes twice, whatever the loop does."""

from __future__ import annotations

import random
import sys
import threading
from collections import deque
from collections.abc import Iterator

import pytest
from tests.unit.client.consumer.stored import batch, chunk

from ottla.client.consumer.positions import PartitionState, Phase, Position
from ottla.client.consumer.prefetch import Prefetch
from ottla.client.consumer.values import NO_EPOCH

CHUNKS = 1500
PARTITIONS = 3
RECORDS = 5


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads change places every few instructions, not every few milliseconds."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("hasty_threads")
def test_pauses_doubts_and_interruptions_lose_and_repeat_nothing() -> None:
    prefetch = Prefetch(10_000_000, lambda: None, threading.Lock())
    states = [PartitionState("orders", number) for number in range(PARTITIONS)]
    for state in states:
        state.stand_at(Position(0))
    taken: deque[tuple[int, int]] = deque()
    is_over = threading.Event()

    def take() -> None:
        while not is_over.is_set() or prefetch.buffered_bytes:
            taken.extend((record.partition, record.offset) for record in prefetch.take(7))

    taker = threading.Thread(target=take)
    taker.start()
    dice = random.Random(6)
    try:
        for _ in range(CHUNKS):
            state = dice.choice(states)
            if state.phase is Phase.FETCHING:
                made = chunk(batch([b"x"] * RECORDS, state.fetch_offset), state.fetch_offset, partition=state.partition)
                prefetch.add(state, made, NO_EPOCH)
            _meddle(prefetch, dice.choice(states), dice.randrange(4))
    finally:
        for state in states:
            state.phase = Phase.FETCHING
            state.is_paused = False
            prefetch.resume(state)
        prefetch.proceed()
        is_over.set()
        taker.join(30)
    assert not taker.is_alive()
    for state in states:
        offsets = [offset for partition, offset in taken if partition == state.partition]
        assert offsets == list(range(state.fetch_offset))
        assert state.next_offset == state.fetch_offset


def _meddle(prefetch: Prefetch, state: PartitionState, kind: int) -> None:
    """What a user's pause, a new leader and a rebalance do, and its end."""
    if kind == 0:
        state.is_paused = not state.is_paused
        (prefetch.hold if state.is_paused else prefetch.resume)(state)
    elif kind == 1 and state.phase is Phase.FETCHING:
        state.phase = Phase.VALIDATING
        prefetch.hold(state)
    elif kind == 2 and state.phase is Phase.VALIDATING:
        state.phase = Phase.FETCHING
        prefetch.resume(state)
    elif kind == 3:
        prefetch.interrupt()
        prefetch.proceed()
