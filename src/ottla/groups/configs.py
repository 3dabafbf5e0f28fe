"""Settings of single groups: what a group sets itself takes the place of the broker's.

They belong to the group's name, whether or not there is such a group, and are kept with the cluster's state. A group's
`consumer.session.timeout.ms` has its default in the broker's `group.consumer.session.timeout.ms`, and its limits in
`group.consumer.min.session.timeout.ms` and `group.consumer.max.session.timeout.ms`; the others likewise. What share
groups and streams groups could set is kept, without effect.
"""

from collections.abc import Mapping
from dataclasses import replace

from ottla.groups.settings import GroupSettings
from ottla.groups.unused_configs import UNUSED_KEYS, WITHOUT_BROKER_KEY
from ottla.log.config_keys import BadConfigValue, ConfigKey, ConfigType, ConfigValue, at_least
from ottla.protocol.errors import ErrorCode, KafkaError

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

_KEYS = (
    ConfigKey(
        SESSION_TIMEOUT,
        ConfigType.INT,
        45_000,
        at_least(1),
        "After this long without a heartbeat a member of the group is removed.",
    ),
    ConfigKey(
        HEARTBEAT_INTERVAL, ConfigType.INT, 5_000, at_least(1), "How often members of the group are told to report."
    ),
    ConfigKey(
        ASSIGNMENT_INTERVAL, ConfigType.INT, 1_000, at_least(0), "The shortest time between two target assignments."
    ),
)
GROUP_CONFIGS: dict[str, ConfigKey] = {key.name: key for key in (*_KEYS, *UNUSED_KEYS)}
BROKER_KEY = {name: name if name in WITHOUT_BROKER_KEY else f"group.{name}" for name in GROUP_CONFIGS}
UNUSED_CONFIGS = frozenset(key.name for key in UNUSED_KEYS)


def settings_of(settings: GroupSettings, configs: Mapping[str, str]) -> GroupSettings:
    """The settings that a group goes by; what it set once stays within the broker's limits of today."""
    if not configs:
        return settings
    values: dict[str, int] = {}
    for name, value in _numbers(settings, configs).items():
        minimum, maximum = _limits(settings, name)
        values[_field(name)] = max(minimum, min(value, maximum))
    return replace(settings, **values)  # type: ignore[arg-type]  # all of them are numbers


def check_group_configs(settings: GroupSettings, configs: Mapping[str, str]) -> None:
    """INVALID_CONFIG unless a group may set these."""
    unknown = sorted(configs.keys() - GROUP_CONFIGS.keys())
    if unknown:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"These are no settings of groups: {', '.join(unknown)}")
    for name in UNUSED_CONFIGS & configs.keys():
        _parsed(GROUP_CONFIGS[name], configs[name])
    numbers = _numbers(settings, configs)
    for name in configs.keys() & numbers.keys():
        minimum, maximum = _limits(settings, name)
        if not minimum <= numbers[name] <= maximum:
            message = f"{name} is {numbers[name]}: this broker allows {minimum} to {maximum}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    if numbers[SESSION_TIMEOUT] <= numbers[HEARTBEAT_INTERVAL]:
        message = f"{SESSION_TIMEOUT} is {numbers[SESSION_TIMEOUT]}: it must be more than {HEARTBEAT_INTERVAL}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)


def _numbers(settings: GroupSettings, configs: Mapping[str, str]) -> dict[str, int]:
    return {key.name: _number(settings, configs, key) for key in _KEYS}


def _number(settings: GroupSettings, configs: Mapping[str, str], key: ConfigKey) -> int:
    value = _parsed(key, configs[key.name]) if key.name in configs else getattr(settings, _field(key.name))
    assert isinstance(value, int)
    return value


def _parsed(key: ConfigKey, text: str) -> ConfigValue:
    try:
        return key.parse(text)
    except BadConfigValue as expected:
        message = f"{key.name} is {text!r}: it must be {expected}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, message) from None


def _field(name: str) -> str:
    return BROKER_KEY[name].replace(".", "_")


def _limits(settings: GroupSettings, name: str) -> tuple[int, int]:
    kind = name.removeprefix("consumer.").replace(".", "_")
    minimum = getattr(settings, f"group_consumer_min_{kind}")
    maximum = getattr(settings, f"group_consumer_max_{kind}")
    assert isinstance(minimum, int)
    assert isinstance(maximum, int)
    return minimum, maximum
