"""Dynamic broker settings of Apache Kafka that this broker does not use.

| settings                                                | a change of them                                          |
|---------------------------------------------------------|-----------------------------------------------------------|
| that Kafka refuses to change while a broker runs        | INVALID_REQUEST                                           |
| that promise protection, or something that is not here  | INVALID_REQUEST: nobody must believe that it is there     |
| any others, such as sizes of thread pools               | checked, kept, shown, without effect, and the log says so |

Names that Kafka does not know either are kept as well, unseen: they could be secrets. A test compares the tables with a
real broker.
"""

from ottla.log.config_keys import INT64_MAX, Allowed, ConfigKey, ConfigType, ConfigValue, at_least, between

_BOOLEAN, _SHORT, _INT, _LONG = ConfigType.BOOLEAN, ConfigType.SHORT, ConfigType.INT, ConfigType.LONG
_DOUBLE, _LIST = ConfigType.DOUBLE, ConfigType.LIST


def _unused(
    name: str, kind: ConfigType, default: ConfigValue, allowed: Allowed | None, reason: str
) -> tuple[str, ConfigKey]:
    return name, ConfigKey(name, kind, default, allowed, f"Without effect on this broker: {reason}.")


_THREADS, _TIERED = "it has no such threads", "there is no tiered storage"
_CLEANER = "the cleaner reads and writes as fast as the processor lets it"
_GROUPS = "there are no groups of this kind"
_SASL = "there is no SASL"

UNUSED_KEYS: dict[str, ConfigKey] = dict(
    (
        _unused("background.threads", _INT, 10, at_least(1), _THREADS),
        _unused("config.providers", _LIST, (), None, "values are taken as they are"),
        _unused("follower.fetch.last.tiered.offset.enable", _BOOLEAN, False, None, _TIERED),
        _unused("group.coordinator.cached.buffer.max.bytes", _INT, 1_048_588, at_least(524_288), "it keeps no buffer"),
        _unused("group.share.assignment.interval.ms", _INT, 1_000, between(0, 15_000), _GROUPS),
        _unused("group.streams.assignment.interval.ms", _INT, 1_000, between(0, 15_000), _GROUPS),
        _unused("log.cleaner.io.buffer.size", _INT, 524_288, at_least(0), _CLEANER),
        _unused("log.cleaner.io.max.bytes.per.second", _DOUBLE, None, None, _CLEANER),
        _unused("log.cleaner.threads", _INT, 1, at_least(1), "one log is compacted at a time"),
        _unused("metric.reporters", _LIST, ("org.apache.kafka.common.metrics.JmxReporter",), None, "there is no JMX"),
        _unused("num.io.threads", _INT, 8, at_least(1), _THREADS),
        _unused("num.network.threads", _INT, 3, at_least(1), _THREADS),
        _unused("num.recovery.threads.per.data.dir", _INT, 2, at_least(1), _THREADS),
        _unused("num.replica.fetchers", _INT, 1, at_least(1), "there is one broker"),
        _unused("remote.fetch.max.wait.ms", _INT, 500, at_least(1), _TIERED),
        _unused("remote.list.offsets.request.timeout.ms", _LONG, 30_000, at_least(1), _TIERED),
        _unused("remote.log.index.file.cache.total.size.bytes", _LONG, 1_073_741_824, at_least(1), _TIERED),
        _unused("remote.log.manager.copier.thread.pool.size", _INT, 10, at_least(1), _TIERED),
        _unused("remote.log.manager.copy.max.bytes.per.second", _LONG, INT64_MAX, at_least(1), _TIERED),
        _unused("remote.log.manager.expiration.thread.pool.size", _INT, 10, at_least(1), _TIERED),
        _unused("remote.log.manager.fetch.max.bytes.per.second", _LONG, INT64_MAX, at_least(1), _TIERED),
        _unused("remote.log.manager.follower.thread.pool.size", _INT, 2, at_least(1), _TIERED),
        _unused("remote.log.reader.threads", _INT, 10, at_least(1), _TIERED),
        _unused("share.coordinator.cached.buffer.max.bytes", _INT, 1_048_588, at_least(524_288), _GROUPS),
        _unused("sasl.kerberos.min.time.before.relogin", _LONG, 60_000, None, _SASL),
        _unused("sasl.kerberos.ticket.renew.jitter", _DOUBLE, 0.05, None, _SASL),
        _unused("sasl.kerberos.ticket.renew.window.factor", _DOUBLE, 0.8, None, _SASL),
        _unused("sasl.login.refresh.buffer.seconds", _SHORT, 300, None, _SASL),
        _unused("sasl.login.refresh.min.period.seconds", _SHORT, 60, None, _SASL),
        _unused("sasl.login.refresh.window.factor", _DOUBLE, 0.8, None, _SASL),
        _unused("sasl.login.refresh.window.jitter", _DOUBLE, 0.05, None, _SASL),
    )
)
# Kafka lets these be set for one broker, not for all.
OF_ONE_BROKER = tuple(name for name in UNUSED_KEYS if name.startswith("sasl."))

# What the names begin with of settings that promise what there is not, and which a name alone could make believe.
_PROMISES = (
    "allow.everyone.",
    "authorizer.",
    "connections.max.reauth.",
    "cordoned.",
    "delegation.",
    "listener.name.",
    "password.encoder.",
    "principal.builder.",
    "sasl.",
    "security.",
    "ssl.",
    "super.users",
)

# What the names of settings that cannot be changed begin with.
_FIXED_PREFIXES = (
    "add.partitions.",
    "alter.",
    "auto.",
    "broker.",
    "client.",
    "connection.",
    "connections.",
    "controlled.",
    "controller.",
    "create.",
    "delete.",
    "early.",
    "fetch.",
    "group.",
    "initial.",
    "inter.",
    "kafka.",
    "leader.",
    "log.cleaner.enable",
    "log.dir.",
    "log.retention.check.",
    "max.request.",
    "metadata.",
    "metrics.",
    "num.replica.alter.",
    "offset.",
    "offsets.",
    "process.",
    "producer.purgatory.",
    "queued.",
    "quota.",
    "remote.",
    "replica.",
    "replication.",
    "request.",
    "share.",
    "socket.",
    "telemetry.",
    "transaction.",
    "transactional.",
)


def is_promise(name: str) -> bool:
    """Whether somebody who sets this would count on what this broker does not do."""
    return name.startswith(_PROMISES) and name not in UNUSED_KEYS


def is_fixed_in_kafka(name: str) -> bool:
    """Whether Kafka refuses to change a setting that this broker does not use."""
    return name.startswith(_FIXED_PREFIXES) and name not in UNUSED_KEYS
