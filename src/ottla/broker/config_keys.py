"""The broker's own keys, under Kafka's names. Broker-wide defaults of topic keys are in `ottla.log.topic_configs`."""

from ottla.broker.config_keys_groups import GROUP_KEYS
from ottla.broker.config_keys_transactions import TRANSACTION_KEYS
from ottla.log.config_keys import INT32_MAX, ConfigKey, ConfigType, at_least

_BOOLEAN, _INT, _LONG = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG
_STRING, _LIST = ConfigType.STRING, ConfigType.LIST

_KEYS = (
    ConfigKey("node.id", _INT, 1, at_least(0), "The number of this broker in its cluster; also read as broker.id."),
    ConfigKey("broker.rack", _STRING, None, None, "The rack of this broker; replicas are spread over racks."),
    ConfigKey(
        "listeners",
        _LIST,
        ("PLAINTEXT://localhost:9092",),
        None,
        "Where the broker listens: NAME://host:port, separated by commas. An empty host is every address, port 0 "
        "picks a free one. The default is reachable from this machine only.",
    ),
    ConfigKey(
        "advertised.listeners",
        _LIST,
        None,
        None,
        "What clients are told to connect to; `listeners` where it is not set.",
    ),
    ConfigKey(
        "listener.security.protocol.map",
        _STRING,
        "PLAINTEXT:PLAINTEXT",
        None,
        "The security protocol of each listener name: name:protocol, separated by commas.",
    ),
    ConfigKey("log.dir", _LIST, ("./ottla-data",), None, "The data directory, where log.dirs is not set."),
    ConfigKey("log.dirs", _LIST, None, None, "The data directories; partitions are spread over them."),
    ConfigKey("num.partitions", _INT, 1, at_least(1), "Partitions of a topic whose creator does not say."),
    ConfigKey("default.replication.factor", _INT, 1, at_least(1), "Replicas of a topic whose creator does not say."),
    ConfigKey("auto.create.topics.enable", _BOOLEAN, True, None, "Whether asking for an unknown topic creates it."),
    ConfigKey("delete.topic.enable", _BOOLEAN, True, None, "Whether topics can be deleted."),
    ConfigKey(
        "socket.request.max.bytes",
        _INT,
        104_857_600,
        at_least(1),
        "The largest request; a larger one closes its connection.",
    ),
    ConfigKey(
        "queued.max.request.bytes",
        _LONG,
        536_870_912,
        None,
        "How many bytes of large requests may be arriving at once; above it, clients wait. -1 is no limit.",
    ),
    ConfigKey("max.connections", _INT, INT32_MAX, at_least(0), "Connections at once; above it, new ones wait."),
    ConfigKey(
        "max.connections.per.ip", _INT, INT32_MAX, at_least(0), "Connections from one address; more are refused."
    ),
    ConfigKey(
        "max.connections.per.ip.overrides",
        _STRING,
        "",
        None,
        "Other limits for some addresses: address:number, separated by commas.",
    ),
    ConfigKey(
        "max.connection.creation.rate",
        _INT,
        INT32_MAX,
        at_least(0),
        "Connections that are accepted in a second; above it, new ones wait.",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        _LONG,
        600_000,
        None,
        "A connection that is silent for this long is closed; -1 never.",
    ),
    ConfigKey("socket.listen.backlog.size", _INT, 512, at_least(1), "Connections that may wait to be accepted."),
    ConfigKey(
        "socket.send.buffer.bytes", _INT, 524_288, at_least(-1), "The socket's send buffer; -1 lets the system choose."
    ),
    ConfigKey(
        "socket.receive.buffer.bytes", _INT, -1, at_least(-1), "The socket's receive buffer; -1 lets the system choose."
    ),
    ConfigKey(
        "ottla.busy.poll.us",
        _INT,
        150,
        at_least(0),
        "How long the broker looks for the next request without sleeping, after requests that came close together: "
        "shorter waits for some processor time. 0 never; ignored on a single processor.",
    ),
    ConfigKey(
        "ottla.http.listeners",
        _LIST,
        (),
        None,
        "Where metrics and health are served over HTTP: http://host:port, separated by commas. An empty host is every "
        "address, port 0 picks a free one. Nothing is served where it is not set.",
    ),
    ConfigKey(
        "ottla.max.open.files",
        _INT,
        0,
        at_least(0),
        "How many files of logs may be open at once; above it the least recently used are closed, and opened again "
        "when they are needed. 0 is half of what the system allows this process; connections have the other half.",
    ),
    ConfigKey(
        "ottla.metrics.partitions",
        _BOOLEAN,
        True,
        None,
        "Whether the metrics have series of their own for each partition; turn it off where there are very many.",
    ),
    ConfigKey("fetch.max.bytes", _INT, 57_671_680, at_least(1024), "The most that one fetch may return."),
    ConfigKey(
        "max.incremental.fetch.session.cache.slots", _INT, 1000, at_least(0), "Fetch sessions that are kept at once."
    ),
    ConfigKey(
        "producer.id.expiration.ms",
        _INT,
        86_400_000,
        at_least(1),
        "How long the sequences of an idempotent producer are remembered after its last batch.",
    ),
    ConfigKey(
        "producer.id.expiration.check.interval.ms",
        _INT,
        600_000,
        at_least(1),
        "How often forgotten producers are looked for.",
        internal=True,
    ),
    ConfigKey(
        "transaction.partition.verification.enable",
        _BOOLEAN,
        True,
        None,
        "Whether the coordinator of a transaction is asked before its first batch is written to a partition.",
    ),
    ConfigKey(
        "add.partitions.to.txn.retry.backoff.ms",
        _INT,
        20,
        at_least(1),
        "How long Produce waits before it asks a coordinator again that is still ending the transaction before.",
    ),
    ConfigKey(
        "add.partitions.to.txn.retry.backoff.max.ms",
        _INT,
        100,
        at_least(0),
        "For how long Produce asks it again, all in all.",
    ),
    ConfigKey(
        "quota.window.num", _INT, 11, at_least(1), "Over how many windows the rates of clients and addresses are taken."
    ),
    ConfigKey("quota.window.size.seconds", _INT, 1, at_least(1), "How long such a window is."),
    ConfigKey(
        "controller.quota.window.num",
        _INT,
        11,
        at_least(1),
        "How many windows' worth of partitions a client may create or delete at once.",
    ),
    ConfigKey("controller.quota.window.size.seconds", _INT, 1, at_least(1), "How long such a window is."),
    ConfigKey("log.cleaner.enable", _BOOLEAN, True, None, "Whether topics with cleanup.policy=compact are compacted."),
    ConfigKey(
        "log.cleaner.backoff.ms",
        _LONG,
        15_000,
        at_least(0),
        "How long the cleaner waits when no log needs it.",
    ),
    ConfigKey(
        "log.cleaner.dedupe.buffer.size",
        _LONG,
        134_217_728,
        at_least(1_048_577),
        "Memory for the keys of one compaction, 24 bytes each; a log with more keys takes several.",
    ),
    ConfigKey(
        "log.cleaner.io.buffer.load.factor",
        ConfigType.DOUBLE,
        0.9,
        None,
        "How full the memory for keys may get; fuller means fewer rounds and more collisions.",
    ),
    ConfigKey(
        "log.flush.scheduler.interval.ms",
        _LONG,
        9_223_372_036_854_775_807,
        None,
        "How often logs are checked for flush.ms; one second at the most where a topic sets it.",
    ),
    ConfigKey(
        "log.flush.offset.checkpoint.interval.ms",
        _INT,
        60_000,
        at_least(0),
        "How often the offsets up to which logs are flushed are written down, to shorten recovery.",
    ),
    ConfigKey(
        "log.flush.start.offset.checkpoint.interval.ms",
        _INT,
        60_000,
        at_least(0),
        "How often the first offsets of logs are written down.",
    ),
    ConfigKey(
        "log.retention.check.interval.ms",
        _LONG,
        300_000,
        at_least(1),
        "How often logs are checked for segments that retention no longer keeps.",
    ),
    ConfigKey(
        "replica.high.watermark.checkpoint.interval.ms",
        _LONG,
        5_000,
        None,
        "How often high watermarks are written down.",
    ),
)

BROKER_CONFIGS: dict[str, ConfigKey] = {key.name: key for key in (*_KEYS, *GROUP_KEYS, *TRANSACTION_KEYS)}
ALIASES = {"broker.id": "node.id"}
