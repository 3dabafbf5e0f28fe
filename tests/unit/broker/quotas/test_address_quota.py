"""Connections by address: spelt as it may be, counted for itself, bounded."""

import pytest

from ottla.broker.quotas.addresses import AddressQuota, canonical_address
from ottla.broker.quotas.clients import MOST_CLIENTS
from ottla.broker.quotas.rates import Windows
from ottla.testing import ManualClock


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("localhost", None),
        ("", None),
    ],
)
def test_addresses_have_one_spelling(text: str, address: str | None) -> None:
    assert canonical_address(text) == address


def test_an_address_is_let_in_again_when_its_time_is_over() -> None:
    clock = ManualClock()
    quota = AddressQuota(Windows(), clock)
    assert not quota
    quota.replace({"10.0.0.1": 1}, None)
    assert quota
    assert [quota.connected("10.0.0.1") for _ in range(10)] == [0] * 10
    assert quota.connected("10.0.0.1") == 1000
    assert quota.connected("10.0.0.2") == 0
    for _ in range(10):
        clock.advance(100)
        assert quota.connected("10.0.0.1") > 0
    clock.advance(10_000)
    assert quota.connected("10.0.0.1") == 0, "what was refused does not count"


def test_the_default_is_for_each_address_without_a_limit_of_its_own() -> None:
    quota = AddressQuota(Windows(), ManualClock())
    quota.replace({"10.0.0.1": 100}, 1)
    assert all(quota.connected("10.0.0.1") == 0 for _ in range(100))
    assert [quota.connected("::1") for _ in range(11)][-1] > 0
    quota.replace({}, None)
    assert quota.connected("::1") == 0


def test_a_flood_of_addresses_makes_no_memory_grow() -> None:
    quota = AddressQuota(Windows(), ManualClock())
    quota.replace({}, 1)
    for number in range(MOST_CLIENTS + 100):
        quota.connected(f"10.{number // 65536}.{number // 256 % 256}.{number % 256}")
    assert len(quota) == MOST_CLIENTS
