"""Which epoch began where."""

import pytest

from ottla.log.leader_epochs import LeaderEpochs


def epochs() -> LeaderEpochs:
    cache = LeaderEpochs([(2, 10), (4, 20), (5, 35)])
    cache.log_end_offset = lambda: 50
    return cache


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (0, (0, 10)), (1, (1, 10)), (2, (2, 20)), (3, (2, 20)), (4, (4, 35)), (5, (5, 50)), (6, (-1, -1))],
)
def test_where_an_epoch_ended(epoch: int, answer: tuple[int, int]) -> None:
    assert epochs().end_offset_for(epoch) == answer


def test_an_empty_cache_knows_nothing() -> None:
    assert LeaderEpochs().end_offset_for(0) == (-1, -1)
    assert LeaderEpochs().latest_epoch == -1
    assert LeaderEpochs().epoch_for(5) == -1


@pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 2), (19, 2), (20, 4), (35, 5), (100, 5)])
def test_the_epoch_of_an_offset(offset: int, epoch: int) -> None:
    assert epochs().epoch_for(offset) == epoch


def test_repeating_the_latest_epoch_changes_nothing() -> None:
    cache = epochs()
    cache.assign(5, 40)
    assert not cache.changed
    assert cache.entries() == [(2, 10), (4, 20), (5, 35)]


@pytest.mark.parametrize(
    ("epoch", "start", "entries"),
    [
        (6, 50, [(2, 10), (4, 20), (5, 35), (6, 50)]),
        (6, 35, [(2, 10), (4, 20), (6, 35)]),
        (6, 15, [(2, 10), (6, 15)]),
        (3, 60, [(2, 10), (3, 60)]),
        (5, 30, [(2, 10), (4, 20), (5, 30)]),
    ],
)
def test_the_newer_entry_is_right(epoch: int, start: int, entries: list[tuple[int, int]]) -> None:
    cache = epochs()
    cache.assign(epoch, start)
    assert cache.entries() == entries
    assert cache.changed
    assert cache.latest_epoch == epoch


def test_nonsense_is_refused() -> None:
    for entry in ((-1, 0), (0, -1)):
        with pytest.raises(ValueError, match="not negative"):
            epochs().assign(*entry)


@pytest.mark.parametrize(("end", "left"), [(10, 0), (11, 1), (20, 1), (21, 2), (35, 2), (36, 3), (100, 3)])
def test_truncation_from_the_end(end: int, left: int) -> None:
    cache = epochs()
    cache.truncate_from_end(end)
    assert len(cache) == left
    assert cache.changed == (left < 3)


@pytest.mark.parametrize(
    ("start", "entries"),
    [
        (5, [(2, 10), (4, 20), (5, 35)]),
        (10, [(2, 10), (4, 20), (5, 35)]),
        (15, [(2, 15), (4, 20), (5, 35)]),
        (20, [(4, 20), (5, 35)]),
        (40, [(5, 40)]),
    ],
)
def test_truncation_from_the_start(start: int, entries: list[tuple[int, int]]) -> None:
    cache = epochs()
    cache.truncate_from_start(start)
    assert cache.entries() == entries
