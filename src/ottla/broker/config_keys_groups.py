"""The broker's keys for groups and their offsets, under Kafka's names."""

from collections.abc import Mapping

from ottla.groups.settings import GroupSettings
from ottla.log.config_keys import INT32_MAX, MINUTE_MS, Allowed, ConfigKey, ConfigType, ConfigValue, at_least

_INT, _LONG, _SHORT, _LIST, _STRING = (
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.SHORT,
    ConfigType.LIST,
    ConfigType.STRING,
)
RETENTION_MINUTES = "offsets.retention.minutes"
MIGRATION_POLICY = "group.consumer.migration.policy"
MIGRATION_POLICIES = ("disabled", "downgrade", "upgrade", "bidirectional")
ASSIGNORS = ("uniform", "range")

_SOME_ASSIGNORS = Allowed(
    lambda value: isinstance(value, tuple) and bool(value) and set(value) <= set(ASSIGNORS),
    f"a list of {', '.join(ASSIGNORS)}, one at least",
)
_A_POLICY = Allowed(
    lambda value: isinstance(value, str) and value.lower() in MIGRATION_POLICIES,
    f"one of {', '.join(MIGRATION_POLICIES)}",
)

GROUP_KEYS = (
    ConfigKey(
        "group.min.session.timeout.ms", _INT, 6_000, None, "The shortest session timeout that a classic member may ask."
    ),
    ConfigKey(
        "group.max.session.timeout.ms",
        _INT,
        1_800_000,
        None,
        "The longest session timeout that a classic member may ask for.",
    ),
    ConfigKey(
        "group.initial.rebalance.delay.ms",
        _INT,
        3_000,
        None,
        "How long a classic group that was empty waits for more members before its first generation.",
    ),
    ConfigKey("group.max.size", _INT, INT32_MAX, at_least(1), "The most members of a classic group."),
    ConfigKey(
        "group.consumer.session.timeout.ms",
        _INT,
        45_000,
        at_least(1),
        "After this long without a heartbeat a member of a consumer group is removed.",
    ),
    ConfigKey(
        "group.consumer.min.session.timeout.ms", _INT, 45_000, at_least(1), "The shortest that a group may be given."
    ),
    ConfigKey(
        "group.consumer.max.session.timeout.ms", _INT, 60_000, at_least(1), "The longest that a group may be given."
    ),
    ConfigKey(
        "group.consumer.heartbeat.interval.ms",
        _INT,
        5_000,
        at_least(1),
        "How often members of consumer groups are told to report.",
    ),
    ConfigKey(
        "group.consumer.min.heartbeat.interval.ms", _INT, 5_000, at_least(1), "The shortest that a group may be given."
    ),
    ConfigKey(
        "group.consumer.max.heartbeat.interval.ms", _INT, 15_000, at_least(1), "The longest that a group may be given."
    ),
    ConfigKey(
        "group.consumer.assignment.interval.ms",
        _INT,
        1_000,
        at_least(0),
        "The shortest time between two target assignments of a consumer group.",
    ),
    ConfigKey(
        "group.consumer.min.assignment.interval.ms", _INT, 0, at_least(0), "The shortest that a group may be given."
    ),
    ConfigKey(
        "group.consumer.max.assignment.interval.ms", _INT, 15_000, at_least(0), "The longest that a group may be given."
    ),
    ConfigKey("group.consumer.max.size", _INT, INT32_MAX, at_least(1), "The most members of a consumer group."),
    ConfigKey(
        "group.consumer.assignors",
        _LIST,
        ASSIGNORS,
        _SOME_ASSIGNORS,
        "How the broker may spread partitions over members; the first one where members do not say.",
    ),
    ConfigKey(
        MIGRATION_POLICY,
        _STRING,
        "bidirectional",
        _A_POLICY,
        "Whether a classic group with members may become a consumer group (upgrade), and the other way round "
        "(downgrade).",
    ),
    ConfigKey(
        "group.consumer.regex.refresh.interval.ms",
        _INT,
        600_000,
        at_least(10_000),
        "How often the patterns that members subscribe to are matched again.",
        internal=True,
    ),
    ConfigKey(
        "offset.metadata.max.bytes", _INT, 4_096, None, "The longest text that may be committed beside an offset."
    ),
    ConfigKey(
        RETENTION_MINUTES,
        _INT,
        10_080,
        at_least(1),
        "How long offsets are kept after their group lost its last member, or stopped to read the topic.",
    ),
    ConfigKey(
        "offsets.retention.check.interval.ms", _LONG, 600_000, at_least(1), "How often expired offsets are looked for."
    ),
    ConfigKey(
        "offsets.topic.num.partitions",
        _INT,
        50,
        at_least(1),
        "Partitions of __consumer_offsets. It counts when the topic is created, and must not change afterwards.",
    ),
    ConfigKey(
        "offsets.topic.replication.factor",
        _SHORT,
        3,
        at_least(1),
        "Replicas of __consumer_offsets when it is created; a broker that is alone creates it with one.",
    ),
    ConfigKey(
        "offsets.topic.segment.bytes",
        _INT,
        104_857_600,
        at_least(1),
        "The size of its segments when it is created: small ones are compacted sooner and load faster.",
    ),
)


# Pairs of keys of which the first must not be more than the second.
_ORDERED = tuple(
    (f"group.consumer.{lower}{name}", f"group.consumer.{upper}{name}")
    for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
    for lower, upper in (("min.", "max."), ("min.", ""), ("", "max."))
)


def disorder(values: Mapping[str, ConfigValue]) -> str | None:
    """What does not fit together among the values of all keys, and what to change; None when everything does."""
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    for smaller, larger in _ORDERED:
        if numbers[smaller] > numbers[larger]:
            return f"{smaller} is {numbers[smaller]}: it must be at most {numbers[larger]}, which {larger} is"
    heartbeat, session = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"
    if numbers[heartbeat] >= numbers[session]:
        return f"{heartbeat} is {numbers[heartbeat]}: it must be less than {numbers[session]}, which {session} is"
    return None


def group_settings(values: Mapping[str, ConfigValue]) -> GroupSettings:
    """From the values of all keys, by their dotted names."""
    fields = {key.field_name: values[key.name] for key in GROUP_KEYS if key.name != RETENTION_MINUTES}
    minutes, policy = values[RETENTION_MINUTES], values[MIGRATION_POLICY]
    assert isinstance(minutes, int)
    fields["group_consumer_migration_policy"] = str(policy).lower()
    return GroupSettings(**fields, offsets_retention_ms=minutes * MINUTE_MS)  # type: ignore[arg-type]  # by the table
