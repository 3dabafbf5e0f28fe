"""Settings that change while the broker runs.

Four layers, the nearest first; a name that a layer does not set is looked up in the next:

| layer                        | set by                                             |
|------------------------------|----------------------------------------------------|
| dynamic, of this broker      | AlterConfigs of the broker under its id            |
| dynamic, of all brokers      | AlterConfigs of the broker with the empty name     |
| static                       | server.properties, the command line                |
| default                      | the tables of keys                                 |

The dynamic layers are in the coordination store, so they outlive the broker. Names that mean nothing here can be set
too, as in Kafka; they are kept and have no effect (see `config_foreign`). Those that promise protection cannot: nobody
would be protected.

`min.insync.replicas` is always set for all brokers, as since Kafka 4.1: where nobody did, to the static value.
"""

import logging
from collections.abc import Iterable, Mapping

from ottla.broker.client_metrics import check_client_metrics
from ottla.broker.config import TOPIC_DEFAULTS, BrokerConfig, ConfigError
from ottla.broker.config_foreign import OF_ONE_BROKER, UNUSED_KEYS, is_fixed_in_kafka, is_promise
from ottla.broker.config_keys import ALIASES, BROKER_CONFIGS
from ottla.broker.config_security import missing_protection
from ottla.cluster.config_changes import ConfigRules
from ottla.cluster.image import BrokerConfigs
from ottla.groups.configs import check_group_configs
from ottla.log.config import TOPIC_CONFIGS, ConfigKey, ConfigType, LogConfig
from ottla.log.config_keys import BadConfigValue
from ottla.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

# The broker-wide default of a topic key can be changed under one name, the one with the finest unit.
DYNAMIC_NAMES = frozenset(key.synonyms[0].name for key in TOPIC_CONFIGS.values() if key.synonyms) | {
    "group.consumer.assignment.interval.ms",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "producer.id.expiration.ms",
    "transaction.partition.verification.enable",
}
BROKER_KEYS: dict[str, ConfigKey] = {**TOPIC_DEFAULTS, **BROKER_CONFIGS}
# With those that can be set without effect.
KNOWN_KEYS: dict[str, ConfigKey] = {**BROKER_KEYS, **UNUSED_KEYS}
MIN_INSYNC_REPLICAS = "min.insync.replicas"

_CACHED_LOG_CONFIGS = 1000


def _broker_lists() -> dict[str, str]:
    """Lists among the broker's settings, with their defaults."""
    return {name: key.format(key.default) for name, key in KNOWN_KEYS.items() if key.type is ConfigType.LIST}


class DynamicConfig:
    """What is in force on this broker. `update` takes over what the cluster's image says.

    `config` is always whole and valid: dynamic settings that do not fit the static ones, which may have been edited
    while the broker was down, are reported and left out.
    """

    def __init__(self, static: BrokerConfig) -> None:
        self.static = static
        self.config = static
        self.own: Mapping[str, str] = {}
        self.for_all: Mapping[str, str] = self._with_min_insync_replicas({})
        self._taken: BrokerConfigs | None = None
        self._log_configs: dict[tuple[tuple[str, str], ...], LogConfig] = {}

    def update(self, configs: BrokerConfigs) -> bool:
        """Take over the dynamic layers; False when they are the ones that were there."""
        if configs is self._taken:
            return False
        self._taken = configs
        own, for_all = configs.by_broker.get(self.static.node_id, {}), self._with_min_insync_replicas(configs.defaults)
        _report_unused({**self.for_all, **self.own}, {**for_all, **own})
        self.own, self.for_all = own, for_all
        unprotected = missing_protection({**self.for_all, **self.own})
        if unprotected is not None:
            logger.error("dynamic settings of this broker have no effect: %s", unprotected)
        self.config = self._merged({**self.for_all, **self.own})
        self._log_configs.clear()
        return True

    def _with_min_insync_replicas(self, for_all: Mapping[str, str]) -> Mapping[str, str]:
        key = TOPIC_CONFIGS[MIN_INSYNC_REPLICAS]
        return {
            MIN_INSYNC_REPLICAS: self.static.properties.get(MIN_INSYNC_REPLICAS, key.format(key.default)),
            **for_all,
        }

    def _merged(self, dynamic: Mapping[str, str]) -> BrokerConfig:
        changes = _effective(dynamic)
        try:
            return self.static.with_changes(changes)
        except ConfigError:
            changes = {name: value for name, value in changes.items() if self._is_valid_alone(name, value)}
        try:
            return self.static.with_changes(changes)
        except ConfigError as error:
            logger.error("the dynamic settings of this broker do not fit its others and are left out: %s", error)
            return self.static

    def _is_valid_alone(self, name: str, value: str) -> bool:
        try:
            self.static.with_changes({name: value})
        except ConfigError as error:
            logger.error("a dynamic setting is left out: %s", error)
            return False
        return True

    # Topics

    def topic_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """What a topic's logs go by; `overrides` were valid when they were set."""
        cached_as = tuple(overrides.items())
        found = self._log_configs.get(cached_as)
        if found is None:
            if len(self._log_configs) >= _CACHED_LOG_CONFIGS:
                self._log_configs.clear()
            found = self._log_configs[cached_as] = self._topic_config(overrides)
        return found

    def _topic_config(self, overrides: Mapping[str, str]) -> LogConfig:
        try:
            return self.validate_topic(overrides)
        except KafkaError as error:
            # A default that was changed since can make it so; the topic must stay usable.
            logger.error("settings of a topic do not fit the broker's, which are used in their place: %s", error)
        usable: dict[str, str] = {}
        for name, value in overrides.items():
            try:
                self.validate_topic({**usable, name: value})
            except KafkaError:
                continue
            usable[name] = value
        return self.validate_topic(usable)

    def validate_topic(self, overrides: Mapping[str, str]) -> LogConfig:
        """The settings of a topic that sets these itself, or `KafkaError`."""
        return LogConfig.from_properties(overrides, self.config.properties)

    # Groups

    def validate_group(self, configs: Mapping[str, str]) -> None:
        """Raise INVALID_CONFIG unless a group may set these."""
        check_group_configs(self.config.groups, configs)

    # Changes

    def rules(self) -> ConfigRules:
        """Which changes of settings the controller lets through."""
        return ConfigRules(
            validate_topic=self.validate_topic,
            validate_broker=self.validate_broker,
            validate_group=self.validate_group,
            validate_client_metrics=check_client_metrics,
            broker_lists=_broker_lists(),
        )

    def validate_broker(self, after: BrokerConfigs, node_id: int | None) -> None:
        """Raise INVALID_REQUEST, which is Kafka's code for it, unless the changed layer can be taken over."""
        changed = after.by_broker[node_id]
        unprotected = missing_protection(changed)
        if unprotected is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, unprotected)
        _refuse(filter(is_promise, changed), "This broker does not do what these settings promise")
        _refuse(filter(_is_fixed, changed), "These settings cannot be changed while the broker runs")
        if node_id is None:
            _refuse(changed.keys() & set(OF_ONE_BROKER), "These settings can be set for one broker, not for all")
        for name in NEVER_ZERO & changed.keys():
            if changed[name].strip() == "0":
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name}=0 would leave nothing; choose a larger number")
        _check_unused(changed)
        try:
            # What is hidden by a nearer layer now must be valid too: that layer can go.
            self.static.with_changes(_effective(changed))
            self.static.with_changes(_effective(after.of(self.static.node_id)))
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


# Kafka lets a broker start with some of these, but not change to them.
NEVER_ZERO = frozenset({"log.retention.ms", "max.connections", "max.connections.per.ip"})


def _effective(configs: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if name in DYNAMIC_NAMES}


def _is_fixed(name: str) -> bool:
    return name not in DYNAMIC_NAMES and (name in BROKER_KEYS or name in ALIASES or is_fixed_in_kafka(name))


def _refuse(names: Iterable[str], why: str) -> None:
    refused = sorted(names)
    if refused:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{why}: {', '.join(refused)}")


def _check_unused(changed: Mapping[str, str]) -> None:
    for name in UNUSED_KEYS.keys() & changed.keys():
        try:
            UNUSED_KEYS[name].parse(changed[name])
        except BadConfigValue as expected:
            message = f"{name} is {changed[name]!r}: it must be {expected}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message) from None


def _report_unused(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Say once of each setting that is new or changed that nothing comes of it."""
    for name in sorted(after.keys() - DYNAMIC_NAMES):
        if before.get(name) != after[name]:
            logger.warning("the setting %s is kept, and has no effect on this broker", name)
