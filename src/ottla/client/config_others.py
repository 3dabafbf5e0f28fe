"""Settings of confluent-kafka (librdkafka), kafka-python and aiokafka that do not exist here: what to write instead.

What a program loses by a missing setting decides where its name stands. A callback, a time limit, a size or a check
would be missed: the setting is refused with what to write instead (`FOR_ALL`, `FOR_PRODUCERS`, `FOR_CONSUMERS`). A
detail of another implementation is not missed: it is accepted with a warning (`HARMLESS_OF_OTHERS`).

Names are written as the other clients write them. In the advice, settings and calls stand in backticks: `config` spells
the settings with underscores for a user who wrote a keyword. Names that are aliases of settings here, such as
`sasl.mechanisms` and `sasl_plain_username`, are declared with these settings and are not in this module.
"""

from collections.abc import Mapping

HARMLESS_OF_OTHERS = frozenset(
    {
        "api.version.fallback.ms",
        "api.version.request",
        "api.version.request.timeout.ms",
        "api_version",
        "api_version_auto_timeout_ms",
        "broker.address.family",
        "broker.address.ttl",
        "broker.version.fallback",
        "builtin.features",
        "consume.callback.max.messages",
        "coordinator.query.interval.ms",
        "enable.random.seed",
        "enable_incremental_fetch_sessions",
        "fetch.queue.backoff.ms",
        "group.protocol.type",
        "internal.termination.signal",
        "log.connection.close",
        "log.queue",
        "log.thread.name",
        "message.copy.max.bytes",
        "metric_group_prefix",
        "metrics_enabled",
        "produce.offset.report",
        "queue.buffering.backpressure.threshold",
        "reconnect.backoff.jitter.ms",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.oauthbearer.method",
        "sasl_kerberos_domain_name",
        "sasl_kerberos_name",
        "selector",
        "socket.blocking.max.ms",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "sticky.partitioning.linger.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.sparse",
    }
)

_NOT_IN_PYTHON = "leave it out: only programs in C can use it"
_BESIDE = "leave it out, and write its settings beside the others"
_TOKENS = "use `sasl.oauthbearer.token.callback`, a function that returns a token or an ottla.OauthToken"
_NO_ASSERTIONS = f"tokens by assertion are not supported: {_TOKENS}"
_CHECKED = (
    "certificates of brokers are always checked: name their authority in `ssl.ca.location`; "
    '`ssl.endpoint.identification.algorithm`="" turns off only the check of the host name'
)
_NO_REVOCATION = "lists of revoked certificates are not supported: leave it out if you can do without them"
_OPENSSL = "leave it out: the defaults of OpenSSL are used"
_KEYS_IN_FILES = "keys are read from files: use `ssl.key.location` and `ssl.certificate.location`"
_NO_PROXY = "proxies are not supported: name addresses in `bootstrap.servers` that can be reached without one"
_NO_THREADS = "leave it out: an async client needs no threads for its calls"

FOR_ALL: Mapping[str, str] = {
    "metadata.broker.list": "use `bootstrap.servers`",
    "bootstrap_timeout_ms": "use `max.block.ms` of a producer, `default.api.timeout.ms` of other clients",
    "socket.timeout.ms": "use `request.timeout.ms`",
    "socket.send.buffer.bytes": "use `send.buffer.bytes`",
    "socket.receive.buffer.bytes": "use `receive.buffer.bytes`",
    "socket_options": "use `send.buffer.bytes` and `receive.buffer.bytes`; TCP_NODELAY and SO_KEEPALIVE are always on",
    "proxy_url": _NO_PROXY,
    "socks5_proxy": _NO_PROXY,
    "topic.metadata.refresh.interval.ms": "use `metadata.max.age.ms`",
    "loop": "leave it out: an async client belongs to the event loop in which it is started",
    "executor": _NO_THREADS,
    "max_workers": _NO_THREADS,
    "kafka_client": "leave it out: a client has connections of its own",
    "default.topic.config": _BESIDE,
    "default_topic_conf": _BESIDE,
    "plugin.library.paths": "leave it out: plugins of librdkafka cannot be loaded",
    # Logs, errors and numbers
    "debug": 'use Python\'s logging: `logging.basicConfig()` and `logging.getLogger("ottla").setLevel(logging.DEBUG)`',
    "log_level": 'use Python\'s logging: `logging.getLogger("ottla").setLevel(logging.ERROR)`',
    "log_cb": 'use Python\'s logging: `logging.getLogger("ottla").addHandler(handler)`',
    "logger": 'use Python\'s logging: `logging.getLogger("ottla").addHandler(handler)`',
    "error_cb": "leave it out: a call that fails raises its error, and what concerns no call is logged by "
    '`logging.getLogger("ottla")`',
    "throttle_cb": "leave it out: a client waits by itself when a broker asks for it",
    # TLS
    "ssl_context": "use `ssl.ca.location`, and `ssl.certificate.location` and `ssl.key.location` for a client "
    "certificate",
    "ssl_cafile": "use `ssl.ca.location`",
    "ssl_certfile": "use `ssl.certificate.location`",
    "ssl_keyfile": "use `ssl.key.location`",
    "ssl_password": "use `ssl.key.password`",
    "ssl_ciphers": "use `ssl.cipher.suites`",
    "ssl_check_hostname": 'use `ssl.endpoint.identification.algorithm`: "https" checks the host name, "" does not',
    "ssl_crlfile": _NO_REVOCATION,
    "ssl.crl.location": _NO_REVOCATION,
    "ssl.ca.pem": "use `ssl.truststore.certificates`",
    "ssl.key.pem": "use `ssl.keystore.key`, together with `ssl.keystore.certificate.chain`",
    "ssl.certificate.pem": "use `ssl.keystore.certificate.chain`, together with `ssl.keystore.key`",
    "ssl_ca": "use `ssl.ca.location`, or `ssl.truststore.certificates` for the text of the certificates",
    "ssl_key": "use `ssl.key.location`, or `ssl.keystore.key` for the text of the key",
    "ssl_certificate": "use `ssl.certificate.location`, or `ssl.keystore.certificate.chain` for the text of the "
    "certificate",
    "ssl.ca.certificate.stores": "leave it out: without `ssl.ca.location` the system's authorities are trusted",
    "https.ca.location": "use `ssl.ca.location`: token endpoints are checked with it, too",
    "https.ca.pem": "use `ssl.truststore.certificates`: token endpoints are checked with them, too",
    "enable.ssl.certificate.verification": _CHECKED,
    "ssl.certificate.verify_cb": _CHECKED,
    "ssl.curves.list": _OPENSSL,
    "ssl.sigalgs.list": _OPENSSL,
    "ssl.providers": _OPENSSL,
    "ssl.engine.id": _KEYS_IN_FILES,
    "ssl.engine.location": _KEYS_IN_FILES,
    "ssl_engine_callback_data": _KEYS_IN_FILES,
    # SASL
    "oauth_cb": _TOKENS,
    "oauthbearer_token_refresh_cb": _TOKENS,
    "sasl_oauth_token_provider": "use `sasl.oauthbearer.token.callback`=provider.token",
    "sasl.oauthbearer.config": _TOKENS,
    "enable.sasl.oauthbearer.unsecure.jwt": _TOKENS,
    "sasl.oauthbearer.client.id": "use `sasl.oauthbearer.client.credentials.client.id`",
    "sasl.oauthbearer.client.secret": "use `sasl.oauthbearer.client.credentials.client.secret`",
    "sasl.oauthbearer.extensions": "return an ottla.OauthToken with extensions from `sasl.oauthbearer.token.callback`",
    "sasl.oauthbearer.grant.type": "leave it out for client_credentials; for others, use "
    "`sasl.oauthbearer.token.callback`",
    "sasl.oauthbearer.metadata.authentication.type": _TOKENS,
    "sasl.oauthbearer.assertion.private.key.pem": _NO_ASSERTIONS,
    "sasl.oauthbearer.assertion.jwt.template.file": _NO_ASSERTIONS,
    # Callbacks of librdkafka that no Python client has
    "background_event_cb": _NOT_IN_PYTHON,
    "closesocket_cb": _NOT_IN_PYTHON,
    "connect_cb": _NOT_IN_PYTHON,
    "enabled_events": _NOT_IN_PYTHON,
    "opaque": _NOT_IN_PYTHON,
    "open_cb": _NOT_IN_PYTHON,
    "resolve_cb": _NOT_IN_PYTHON,
    "socket_cb": _NOT_IN_PYTHON,
}

_DELIVERY = (
    "give each call its own, `producer.send(topic, value, on_delivery=callback)`: a function of (metadata, error), of "
    "which one is None"
)
_IN_ORDER = "leave it out: records of a partition are sent in the order of `producer.send()`"

FOR_PRODUCERS: Mapping[str, str] = {
    "on_delivery": _DELIVERY,
    "dr_cb": _DELIVERY,
    "dr_msg_cb": _DELIVERY,
    "delivery.report.only.error": "leave it out: `producer.flush()` raises where records failed and nobody looked at "
    "their deliveries",
    "stats_cb": "call `producer.metrics()` when you want the numbers",
    "statistics.interval.ms": "call `producer.metrics()` when you want the numbers",
    "queue.buffering.max.ms": "use `linger.ms`",
    "queue.buffering.max.kbytes": "use `buffer.memory`, in bytes",
    "queue.buffering.max.messages": "use `buffer.memory`, in bytes of records that wait to be sent",
    "batch.num.messages": "use `batch.size`, in bytes",
    "max_batch_size": "use `batch.size`",
    "buffer_timeout": "use `linger.ms`, in milliseconds",
    "message.max.bytes": "use `max.request.size`; the limit of brokers is max.message.bytes, a setting of topics",
    "message.send.max.retries": "use `retries`",
    "message.timeout.ms": "use `delivery.timeout.ms`",
    "request.required.acks": "use `acks`",
    "compression.codec": "use `compression.type`",
    "compression.level": "use `compression.gzip.level`, `compression.lz4.level` or `compression.zstd.level`",
    "partitioner_cb": "use `partitioner`, a function of (topic, key, partition_count)",
    "topic.metadata.propagation.max.ms": "use `max.block.ms`, how long a record waits for the metadata of its topic",
    "enable.gapless.guarantee": "use transactions: set `transactional.id`, and send in `producer.transaction()`",
    "queuing.strategy": _IN_ORDER,
    "msg_order_cmp": _IN_ORDER,
}

_LISTENER = "give `consumer.subscribe()` a listener with on_assigned, on_revoked and on_lost"
_COMMITS = (
    "give a function of (offsets, error) to `consumer.commit_async()`; commits by `auto.commit.interval.ms` have no "
    "callback"
)
_STORED = (
    "leave it out: brokers keep the offsets of a group; to keep them yourself, set `enable.auto.commit` to false and "
    "begin with `consumer.assign([(topic, partition, offset)])`"
)

FOR_CONSUMERS: Mapping[str, str] = {
    "consumer_timeout_ms": "iterate over `consumer.records(timeout=1.0)`, which ends when no record came for so many "
    "seconds",
    "enable.partition.eof": "use `consumer.to_arrow()`, which reads up to the ends of the partitions, "
    "`consumer.tables(until=offsets)`, which reads up to offsets, or `consumer.records(timeout=1.0)`, which ends when "
    "no record came for so many seconds",
    "rebalance_cb": _LISTENER,
    "on_assign": _LISTENER,
    "on_revoke": _LISTENER,
    "on_lost": _LISTENER,
    "on_commit": _COMMITS,
    "offset_commit_cb": _COMMITS,
    "default_offset_commit_callback": _COMMITS,
    "consume_cb": "iterate over the consumer: `for record in consumer`",
    "stats_cb": "call `consumer.metrics()` when you want the numbers",
    "statistics.interval.ms": "call `consumer.metrics()` when you want the numbers",
    "auto.commit.enable": "use `enable.auto.commit`",
    "enable.auto.offset.store": "leave it out: a record counts as done when the next one is asked for; to decide it "
    "yourself, set `enable.auto.commit` to false and call `consumer.commit(record)`",
    "offset.store.method": _STORED,
    "offset.store.path": _STORED,
    "offset.store.sync.interval.ms": _STORED,
    "queued.min.messages": "use `prefetch.bytes`, the most bytes that are buffered ahead of the reader",
    "queued.max.messages.kbytes": "use `prefetch.bytes`, in bytes",
    "fetch.wait.max.ms": "use `fetch.max.wait.ms`",
    "fetch.message.max.bytes": "use `max.partition.fetch.bytes`",
    "fetch.error.backoff.ms": "use `retry.backoff.ms`",
    "rebalance_timeout_ms": "use `max.poll.interval.ms`",
    "topic.blacklist": "subscribe to the topics that you want: `consumer.subscribe()` takes names or a pattern",
}


def _dotted(name: str) -> str:
    return name.replace("_", ".")


def _by_dotted_name(table: Mapping[str, str]) -> Mapping[str, str]:
    return {_dotted(name): advice for name, advice in table.items()}


_HARMLESS = frozenset(map(_dotted, HARMLESS_OF_OTHERS))
_FOR_ALL = _by_dotted_name(FOR_ALL)
_BY_ROLE = {"producer": _by_dotted_name(FOR_PRODUCERS), "consumer": _by_dotted_name(FOR_CONSUMERS)}


def is_harmless(dotted: str) -> bool:
    """Whether this client does the same without the setting. Names are dotted here, as in `config`."""
    return dotted in _HARMLESS


def instead_of(dotted: str, role: str) -> str | None:
    """What to write instead of a setting of another client; None for a name that none of them has. `role` is producer,
    consumer or admin."""
    advice = _BY_ROLE.get(role, {}).get(dotted, _FOR_ALL.get(dotted))
    if advice is not None:
        return advice
    owners = [f"{owner}s" for owner, table in _BY_ROLE.items() if dotted in table]
    return f"leave it out here, it is for {' and '.join(owners)}" if owners else None
