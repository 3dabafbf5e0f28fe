"""Broker settings of Apache Kafka that mean nothing here.

Kafka refuses to change some while a broker runs, and so does this broker; the others it checks and applies, and here
they are kept without effect, as names are that nobody knows. A test asks a real broker which are which.
"""

# What the names of settings that cannot be changed begin with.
_FIXED_PREFIXES = (
    "add.partitions.",
    "alter.",
    "authorizer.",
    "auto.",
    "broker.",
    "client.",
    "connection.",
    "connections.",
    "controlled.",
    "controller.",
    "create.",
    "delegation.",
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
    "sasl.",
    "security.",
    "share.",
    "socket.",
    "ssl.",
    "telemetry.",
    "transaction.",
    "transactional.",
)
_CHANGEABLE = frozenset(
    {
        "group.consumer.assignment.interval.ms",
        "group.coordinator.cached.buffer.max.bytes",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
        "share.coordinator.cached.buffer.max.bytes",
    }
)


def is_fixed_in_kafka(name: str) -> bool:
    """Whether Kafka refuses to change a setting that is not known here."""
    return name.startswith(_FIXED_PREFIXES) and name not in _CHANGEABLE
