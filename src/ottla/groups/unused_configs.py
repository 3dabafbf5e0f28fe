"""Settings of share groups and streams groups, of which there are none here: checked and kept, without effect.

A group's name can have them before there is a group of any kind, so tools that set them go on. The limits are those
that Kafka's brokers have by default.
"""

import re

from ottla.log.config_keys import Allowed, ConfigKey, ConfigType, ConfigValue, at_least, between, one_of

_INT, _STRING, _BOOLEAN = ConfigType.INT, ConfigType.STRING, ConfigType.BOOLEAN
_BY_DURATION = "by_duration:"
# ISO 8601 as Java reads it: days, hours, minutes and seconds, each with a sign of its own, one of them at least.
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?=.)(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)
_SECONDS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def _is_reset(value: ConfigValue) -> bool:
    if value in ("earliest", "latest"):
        return True
    if not isinstance(value, str) or not value.startswith(_BY_DURATION):
        return False
    duration = _DURATION.fullmatch(value.removeprefix(_BY_DURATION))
    if duration is None:
        return False
    seconds = sum(float((duration[part] or "0").replace(",", ".")) * size for part, size in _SECONDS.items())
    return (-seconds if duration["sign"] == "-" else seconds) >= 0


_RESET = Allowed(_is_reset, "earliest, latest or by_duration: with a time such as PT1H30M that is not negative")


def _key(name: str, kind: ConfigType, default: ConfigValue, allowed: Allowed | None, meaning: str) -> ConfigKey:
    return ConfigKey(name, kind, default, allowed, f"{meaning} Without effect: there are no groups of this kind here.")


UNUSED_KEYS = (
    _key("share.auto.offset.reset", _STRING, "latest", _RESET, "Where a share group begins to read."),
    _key(
        "share.isolation.level",
        _STRING,
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
        "Whether a share group reads records of transactions that are not committed.",
    ),
    _key("share.renew.acknowledge.enable", _BOOLEAN, True, None, "Whether members may renew the locks of records."),
    _key("share.session.timeout.ms", _INT, 45_000, between(45_000, 60_000), "When a silent member of it is removed."),
    _key("share.heartbeat.interval.ms", _INT, 5_000, between(5_000, 15_000), "How often members of it report."),
    _key("share.assignment.interval.ms", _INT, 1_000, between(0, 15_000), "The shortest time between assignments."),
    _key(
        "share.record.lock.duration.ms",
        _INT,
        30_000,
        between(15_000, 60_000),
        "How long a record is locked by a member.",
    ),
    _key("share.delivery.count.limit", _INT, 5, between(2, 10), "How often a record is delivered at the most."),
    _key(
        "share.partition.max.record.locks",
        _INT,
        2_000,
        between(100, 4_000),
        "How many records of a partition are locked at the most.",
    ),
    _key("streams.session.timeout.ms", _INT, 45_000, between(45_000, 60_000), "When a silent member of it is removed."),
    _key("streams.heartbeat.interval.ms", _INT, 5_000, between(5_000, 15_000), "How often members of it report."),
    _key("streams.assignment.interval.ms", _INT, 1_000, between(0, 15_000), "The shortest time between assignments."),
    _key("streams.num.standby.replicas", _INT, 0, between(0, 2), "How many standby copies a task has."),
    _key(
        "streams.initial.rebalance.delay.ms", _INT, 3_000, at_least(0), "How long a new group waits for more members."
    ),
)
# The others have their defaults in the broker's settings.
WITHOUT_BROKER_KEY = frozenset(("share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"))
