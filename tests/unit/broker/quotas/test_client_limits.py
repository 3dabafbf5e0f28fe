"""Whose limit counts, and how the measurements of very many clients stay few."""

import itertools

import pytest

from ottla.broker.quotas.clients import FORGOTTEN_AFTER_MS, MOST_CLIENTS, ClientQuota
from ottla.broker.quotas.limits import ANY, ClientLimits
from ottla.broker.quotas.rates import Windows

# In the order of precedence; each with a limit of its own, and who shares it.
LEVELS = [
    (("pair", "alice", "app"), ("alice", "app")),
    (("pair", "alice", ANY), ("alice", "app")),
    (("user", "alice"), ("alice", "")),
    (("pair", ANY, "app"), ("alice", "app")),
    (("pair", ANY, ANY), ("alice", "app")),
    (("user", ANY), ("alice", "")),
    (("client", "app"), ("", "app")),
    (("client", ANY), ("", "app")),
]


def limits_of(levels: tuple[int, ...]) -> ClientLimits:
    limits = ClientLimits()
    chosen = [(LEVELS[level][0], float(level)) for level in levels]
    limits.replace(
        [(names[1], names[2], limit) for names, limit in chosen if len(names) == 3],
        [(names[1], limit) for names, limit in chosen if names[0] == "user"],
        [(names[1], limit) for names, limit in chosen if names[0] == "client"],
    )
    return limits


@pytest.mark.parametrize("count", range(1, len(LEVELS) + 1))
def test_the_nearest_limit_counts(count: int) -> None:
    for levels in itertools.combinations(range(len(LEVELS)), count):
        limits = limits_of(levels)
        tags = limits.tags("alice", "app")
        assert tags == LEVELS[levels[0]][1]
        assert limits.of(tags) == float(levels[0])


def test_others_are_not_limited() -> None:
    limits = limits_of((0, 2, 6))
    assert limits.of(limits.tags("bob", "other")) is None
    assert limits.of(limits.tags("alice", "other")) == 2.0
    assert not limits_of(())


def test_a_client_without_a_name_has_no_limit_of_clients() -> None:
    limits = limits_of((7,))
    assert limits.of(limits.tags("alice", "")) is None


def quota(limit: float) -> ClientQuota:
    made = ClientQuota(Windows())
    made.limits.replace([], [], [(ANY, limit)])
    made.limits_changed()
    return made


def test_each_client_has_the_default_for_itself() -> None:
    produce = quota(100.0)
    assert produce.record("alice", "one", 1000, 0) == 0
    assert produce.record("alice", "two", 1000, 0) == 0
    assert produce.record("alice", "one", 1000, 0) == 10_000


def test_all_clients_of_a_user_share_the_limit_of_the_user() -> None:
    produce = ClientQuota(Windows())
    produce.limits.replace([], [("alice", 100.0)], [])
    assert produce.record("alice", "one", 1000, 0) == 0
    assert produce.record("alice", "two", 1000, 0) == 10_000


def test_a_new_limit_is_held_against_what_was_used() -> None:
    produce = quota(100.0)
    produce.record("alice", "one", 2000, 0)
    produce.limits.replace([], [], [(ANY, 50.0)])
    produce.limits_changed()
    assert produce.record("alice", "one", 0, 0) == 30_000
    produce.limits.replace([], [], [])
    produce.limits_changed()
    assert produce.record("alice", "one", 1e9, 0) == 0
    assert len(produce) == 0


def test_idle_clients_are_forgotten() -> None:
    produce = quota(100.0)
    produce.record("alice", "idle", 1000, 0)
    produce.record("alice", "busy", 1000, 0)
    produce.record("alice", "busy", 0, FORGOTTEN_AFTER_MS)
    produce.record("alice", "new", 0, FORGOTTEN_AFTER_MS + 1)
    assert [tags for tags, _ in produce.latest(10)] == [("", "new"), ("", "busy")]


def test_a_flood_of_names_makes_no_memory_grow_and_leaves_those_in_use() -> None:
    produce = quota(100.0)
    produce.record("alice", "busy", 2000, 0)
    for number in range(MOST_CLIENTS * 2):
        produce.record("alice", f"flood-{number}", 1, 0)
        if number % 100 == 0:
            assert produce.record("alice", "busy", 0, 0) > 0
    assert len(produce) == MOST_CLIENTS


def test_no_wait_is_longer_than_the_cap() -> None:
    request = ClientQuota(Windows(), longest_wait_ms=1000)
    request.limits.replace([], [], [(ANY, 1.0)])
    assert request.record("alice", "app", 1e9, 0) == 1000
