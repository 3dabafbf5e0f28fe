"""Settings of single groups: what a group may set, and what it goes by."""

import pytest

from ottla.groups.configs import HEARTBEAT_INTERVAL, SESSION_TIMEOUT, check_group_configs, settings_of
from ottla.groups.settings import GroupSettings
from ottla.protocol.errors import ErrorCode, KafkaError

BROKER = GroupSettings()


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {SESSION_TIMEOUT: "45000"},
        {SESSION_TIMEOUT: "60000", HEARTBEAT_INTERVAL: "15000"},
    ],
)
def test_what_a_group_may_set(configs: dict[str, str]) -> None:
    check_group_configs(BROKER, configs)


@pytest.mark.parametrize(
    "configs",
    [
        {"no.such.key": "1"},
        {SESSION_TIMEOUT: "soon"},
        {SESSION_TIMEOUT: "0"},
        {SESSION_TIMEOUT: "44999"},
        {SESSION_TIMEOUT: "60001"},
        {HEARTBEAT_INTERVAL: "4999"},
        {HEARTBEAT_INTERVAL: "15001"},
    ],
)
def test_what_a_group_may_not_set(configs: dict[str, str]) -> None:
    with pytest.raises(KafkaError) as raised:
        check_group_configs(BROKER, configs)
    assert raised.value.code is ErrorCode.INVALID_CONFIG


def test_a_session_is_longer_than_the_time_between_heartbeats() -> None:
    wide = GroupSettings(group_consumer_min_session_timeout_ms=1, group_consumer_min_heartbeat_interval_ms=1)
    check_group_configs(wide, {SESSION_TIMEOUT: "5001"})
    with pytest.raises(KafkaError):
        check_group_configs(wide, {SESSION_TIMEOUT: "5000"})


def test_what_a_group_sets_takes_the_place_of_the_brokers_settings() -> None:
    assert settings_of(BROKER, {}) is BROKER
    own = settings_of(BROKER, {SESSION_TIMEOUT: "50000"})
    assert own.group_consumer_session_timeout_ms == 50_000
    assert own.group_consumer_heartbeat_interval_ms == BROKER.group_consumer_heartbeat_interval_ms


def test_limits_that_were_changed_since_are_kept() -> None:
    narrow = GroupSettings(group_consumer_max_session_timeout_ms=46_000)
    assert settings_of(narrow, {SESSION_TIMEOUT: "50000"}).group_consumer_session_timeout_ms == 46_000
