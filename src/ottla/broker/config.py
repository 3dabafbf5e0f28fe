"""The broker's settings: read, checked, and named so that code can use them."""

import difflib
import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ottla.broker.config_keys import ALIASES, BROKER_CONFIGS
from ottla.broker.config_keys_groups import disorder, group_settings
from ottla.broker.config_keys_transactions import transaction_settings
from ottla.broker.config_security import missing_protection
from ottla.broker.quotas.rates import SECOND_MS, Windows
from ottla.broker.server import ServerLimits
from ottla.cluster.image import Endpoint
from ottla.groups.settings import GroupSettings
from ottla.log.cleaner import CleanerSettings
from ottla.log.config import TOPIC_CONFIGS, ConfigValue, LogConfig
from ottla.log.config_keys import BadConfigValue
from ottla.log.manager_settings import LogManagerSettings
from ottla.protocol.errors import KafkaError
from ottla.transactions.settings import TransactionSettings

logger = logging.getLogger(__name__)

TOPIC_DEFAULTS = {synonym.name: key for key in TOPIC_CONFIGS.values() for synonym in key.synonyms}
SECURITY_PROTOCOLS = ("PLAINTEXT",)
ANY_HOST = ("", "0.0.0.0", "::")


class ConfigError(Exception):
    """The broker cannot start with these settings; the message says what to change."""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The settings that the broker acts on; `properties` are the ones that were given, as text."""

    properties: Mapping[str, str]
    node_id: int
    rack: str | None
    listeners: tuple[Endpoint, ...]
    advertised_listeners: tuple[Endpoint, ...]
    log_directories: tuple[str, ...]
    num_partitions: int
    default_replication_factor: int
    auto_create_topics: bool
    delete_topics: bool
    fetch_max_bytes: int
    fetch_session_slots: int
    limits: ServerLimits
    http_listeners: tuple[Endpoint, ...]
    metrics_partitions: bool
    max_open_files: int
    cleaner: CleanerSettings | None
    verifies_transactions: bool
    quota_windows: Windows
    controller_quota_windows: Windows
    groups: GroupSettings
    transactions: TransactionSettings

    @classmethod
    def from_properties(cls, given: Mapping[str, str]) -> "BrokerConfig":
        """Check everything, or raise `ConfigError` saying what to change.

        Names that this broker does not know are reported and otherwise ignored: a `server.properties` written
        for Apache Kafka has many that mean nothing here. Those that promise protection are never ignored.
        """
        properties = {ALIASES.get(name, name): value for name, value in given.items()}
        problem = missing_protection(properties)
        if problem is not None:
            raise ConfigError(problem)
        _report_unknown(properties)
        return cls._checked(properties)

    def with_changes(self, changes: Mapping[str, str]) -> "BrokerConfig":
        """These settings with others over them, or `ConfigError`."""
        return self._checked({**self.properties, **changes})

    @classmethod
    def _checked(cls, properties: Mapping[str, str]) -> "BrokerConfig":
        values = {name: _value(name, properties) for name in BROKER_CONFIGS}
        try:
            LogConfig.from_properties({}, properties)
        except KafkaError as error:
            raise ConfigError(str(error)) from None
        problem = disorder(values)
        if problem is not None:
            raise ConfigError(problem)
        protocols = _pairs("listener.security.protocol.map", values)
        listeners = _endpoints("listeners", values["listeners"], protocols)
        advertised = _advertised(values["advertised.listeners"], listeners, protocols)
        rack = values["broker.rack"]
        return cls(
            properties=properties,
            node_id=_integer(values, "node.id"),
            rack=None if rack is None else str(rack),
            listeners=listeners,
            advertised_listeners=advertised,
            log_directories=_directories(values),
            num_partitions=_integer(values, "num.partitions"),
            default_replication_factor=_integer(values, "default.replication.factor"),
            auto_create_topics=bool(values["auto.create.topics.enable"]),
            delete_topics=bool(values["delete.topic.enable"]),
            fetch_max_bytes=_integer(values, "fetch.max.bytes"),
            fetch_session_slots=_integer(values, "max.incremental.fetch.session.cache.slots"),
            limits=_limits(values),
            http_listeners=_http_endpoints(values["ottla.http.listeners"]),
            metrics_partitions=bool(values["ottla.metrics.partitions"]),
            max_open_files=_integer(values, "ottla.max.open.files"),
            cleaner=_cleaner(values),
            verifies_transactions=bool(values["transaction.partition.verification.enable"]),
            quota_windows=_windows(values, "quota.window"),
            controller_quota_windows=_windows(values, "controller.quota.window"),
            groups=group_settings(values),
            transactions=transaction_settings(values),
        )

    def interval_ms(self, name: str) -> int:
        """One of the keys that end in `.ms`."""
        value = _value(name, self.properties)
        assert isinstance(value, int)
        return value

    def told_to_clients(self, bound: list[Endpoint]) -> tuple[Endpoint, ...]:
        """Where clients find this broker: the advertised listeners, or the bound ones under a name they can resolve."""
        advertised = {endpoint.name: endpoint for endpoint in self.advertised_listeners}
        told: list[Endpoint] = []
        for endpoint in bound:
            chosen = advertised.get(endpoint.name, endpoint)
            host = socket.gethostname() if chosen.host in ANY_HOST else chosen.host
            told.append(replace(chosen, host=host, port=chosen.port or endpoint.port))
        return tuple(told)

    def log_manager_settings(self) -> LogManagerSettings:
        interval_ms = self.interval_ms
        return LogManagerSettings(
            log_flush_offset_checkpoint_interval_ms=interval_ms("log.flush.offset.checkpoint.interval.ms"),
            log_flush_start_offset_checkpoint_interval_ms=interval_ms("log.flush.start.offset.checkpoint.interval.ms"),
            replica_high_watermark_checkpoint_interval_ms=interval_ms("replica.high.watermark.checkpoint.interval.ms"),
            log_retention_check_interval_ms=interval_ms("log.retention.check.interval.ms"),
            producer_id_expiration_ms=interval_ms("producer.id.expiration.ms"),
            producer_id_expiration_check_interval_ms=interval_ms("producer.id.expiration.check.interval.ms"),
        )


def _report_unknown(properties: Mapping[str, str]) -> None:
    known = [*BROKER_CONFIGS, *TOPIC_DEFAULTS, *TOPIC_CONFIGS]
    for name in properties:
        if name not in BROKER_CONFIGS and name not in TOPIC_DEFAULTS and name not in TOPIC_CONFIGS:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
            logger.warning("%s is not used by this broker%s", name, f"; did you mean {near[0]}?" if near else "")


def _value(name: str, properties: Mapping[str, str]) -> ConfigValue:
    key = BROKER_CONFIGS[name]
    if name not in properties:
        return key.default
    try:
        return key.parse(properties[name])
    except BadConfigValue as expected:
        raise ConfigError(f"{name} is {properties[name]!r}: it must be {expected}") from None


def _integer(values: Mapping[str, ConfigValue], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


def _cleaner(values: Mapping[str, ConfigValue]) -> CleanerSettings | None:
    """None when logs are not to be compacted."""
    if not values["log.cleaner.enable"]:
        return None
    load_factor = values["log.cleaner.io.buffer.load.factor"]
    if not isinstance(load_factor, float) or not 0 < load_factor < 1:
        raise ConfigError(f"log.cleaner.io.buffer.load.factor is {load_factor}: it must be between 0 and 1")
    return CleanerSettings(
        backoff_ms=_integer(values, "log.cleaner.backoff.ms"),
        dedupe_buffer_bytes=_integer(values, "log.cleaner.dedupe.buffer.size"),
        load_factor=load_factor,
    )


def _windows(values: Mapping[str, ConfigValue], prefix: str) -> Windows:
    return Windows(_integer(values, f"{prefix}.num"), _integer(values, f"{prefix}.size.seconds") * SECOND_MS)


def _directories(values: Mapping[str, ConfigValue]) -> tuple[str, ...]:
    given = values["log.dirs"] or values["log.dir"]
    assert isinstance(given, tuple)
    if not given:
        raise ConfigError("log.dir is empty: it must name the data directory")
    return tuple(os.path.abspath(os.path.expanduser(directory)) for directory in given)


def _pairs(name: str, values: Mapping[str, ConfigValue]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    text = values[name]
    assert isinstance(text, str)
    for item in (item.strip() for item in text.split(",") if text):
        left, separator, right = item.rpartition(":")
        if not separator or not left or not right:
            raise ConfigError(f"{name} has {item!r}: each item must look like name:value")
        pairs[left.strip()] = right.strip()
    return pairs


def _endpoints(name: str, items: ConfigValue, protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    assert isinstance(items, tuple)
    endpoints = tuple(_endpoint(name, item, protocols) for item in items)
    if not endpoints:
        raise ConfigError(f"{name} is empty: it must name at least one listener, such as PLAINTEXT://localhost:9092")
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) != len(names):
        raise ConfigError(f"{name} uses a listener name twice: {', '.join(names)}")
    return endpoints


def _advertised(
    items: ConfigValue, listeners: tuple[Endpoint, ...], protocols: Mapping[str, str]
) -> tuple[Endpoint, ...]:
    if not items:
        return ()
    advertised = _endpoints("advertised.listeners", items, protocols)
    names = [listener.name for listener in listeners]
    for endpoint in advertised:
        if endpoint.name not in names:
            raise ConfigError(
                f"advertised.listeners has {endpoint.name}, and listeners has no such name, only {', '.join(names)}"
            )
    return advertised


def _endpoint(name: str, text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not listener or not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{name} has {text!r}: each listener must look like PLAINTEXT://host:port")
    listener = listener.upper()
    protocol = protocols.get(listener, listener)
    if protocol not in SECURITY_PROTOCOLS:
        raise ConfigError(
            f"{name} has {text!r} with the security protocol {protocol}: {', '.join(SECURITY_PROTOCOLS)} is what this "
            "broker speaks, without encryption or authentication; use it where only trusted clients reach the port"
        )
    return Endpoint(listener, host.strip("[]"), int(port), protocol)


def _http_endpoints(items: ConfigValue) -> tuple[Endpoint, ...]:
    assert isinstance(items, tuple)
    return tuple(_http_endpoint(item) for item in items)


def _http_endpoint(text: str) -> Endpoint:
    scheme, separator, address = text.removesuffix("/").partition("://")
    host, colon, port = address.rpartition(":")
    if (
        scheme.lower() != "http"
        or not (separator and colon)
        or not (port.isascii() and port.isdecimal())
        or int(port) > 65535
        or "/" in host
    ):
        raise ConfigError(f"ottla.http.listeners has {text!r}: each item must look like http://localhost:9644")
    return Endpoint("http", host.strip("[]"), int(port))


def _limits(values: Mapping[str, ConfigValue]) -> ServerLimits:
    queued_bytes = _integer(values, "queued.max.request.bytes")
    idle_ms = _integer(values, "connections.max.idle.ms")
    overrides = _pairs("max.connections.per.ip.overrides", values)
    for address, number in overrides.items():
        if not number.isdecimal():
            raise ConfigError(f"max.connections.per.ip.overrides has {number!r} for {address}: it must be a number")
    return ServerLimits(
        request_bytes=_integer(values, "socket.request.max.bytes"),
        queued_request_bytes=queued_bytes if queued_bytes > 0 else 2**63,
        connections=_integer(values, "max.connections"),
        connections_per_address=_integer(values, "max.connections.per.ip"),
        connections_per_address_overrides={address: int(number) for address, number in overrides.items()},
        connections_per_second=_integer(values, "max.connection.creation.rate"),
        connection_windows=_windows(values, "quota.window"),
        idle_ms=idle_ms if idle_ms >= 0 else 2**53,
        backlog=_integer(values, "socket.listen.backlog.size"),
        send_buffer_bytes=_integer(values, "socket.send.buffer.bytes"),
        receive_buffer_bytes=_integer(values, "socket.receive.buffer.bytes"),
        busy_poll_us=_integer(values, "ottla.busy.poll.us"),
    )
