"""Settings as DescribeConfigs tells them: the value in force, where it comes from, and what lies beneath it.

The synonyms of a setting are everything that could give it its value, the nearest first: its own name and its
broker-wide names, layer by layer (see `config_dynamic`). The first of them is the source. As in Kafka, the list begins
where the finest unit of a broker-wide name is set: a retention that is given in hours only has no synonyms.
"""

from collections.abc import Collection, Mapping
from itertools import dropwhile

from ottla.broker.client_metrics import CLIENT_METRICS_CONFIGS
from ottla.broker.config import TOPIC_DEFAULTS
from ottla.broker.config_dynamic import BROKER_KEYS, DYNAMIC_NAMES, KNOWN_KEYS, DynamicConfig
from ottla.broker.config_foreign import UNUSED_KEYS
from ottla.groups.configs import BROKER_KEY, GROUP_CONFIGS, UNUSED_CONFIGS, settings_of
from ottla.log.config import TOPIC_CONFIGS, ConfigKey, ConfigType
from ottla.log.config_keys import BadConfigValue
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

FROM_TOPIC, FROM_BROKER, FROM_ALL_BROKERS, FROM_STATIC, FROM_DEFAULT = 1, 2, 3, 4, 5
FROM_CLIENT_METRICS, FROM_GROUP = 7, 8
UNKNOWN_TYPE = 0
TYPE_NUMBERS = {
    ConfigType.BOOLEAN: 1,
    ConfigType.STRING: 2,
    ConfigType.INT: 3,
    ConfigType.SHORT: 4,
    ConfigType.LONG: 5,
    ConfigType.DOUBLE: 6,
    ConfigType.LIST: 7,
}
OWN_KEYS = "ottla."
FLUSH_SCHEDULER = "log.flush.scheduler.interval.ms"


def describe_topic(
    settings: DynamicConfig, overrides: Mapping[str, str], named: Collection[str] = ()
) -> list[DescribeConfigsResourceResult]:
    """All settings of a topic that sets `overrides` itself.

    Of keys that are not Kafka's, only those that are set somewhere, or named: clients know the list of Kafka's.
    """
    effective = settings.topic_config(overrides)
    entries = []
    for key in TOPIC_CONFIGS.values():
        if key.internal:
            continue
        synonyms = _layers(key.synonyms[0].name, settings) if key.synonyms else []
        value = key.format(effective.value_of(key.name))
        if key.name in overrides:
            synonyms.insert(0, DescribeConfigsSynonym(name=key.name, value=value, source=FROM_TOPIC))
        entry = _entry(key.name, key, value, synonyms, read_only=False)
        if not key.name.startswith(OWN_KEYS) or entry.config_source != FROM_DEFAULT or key.name in named:
            entries.append(entry)
    return entries


def describe_group(settings: DynamicConfig, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
    """All settings of a group that sets `overrides` itself."""
    effective = settings_of(settings.config.groups, overrides)
    entries = []
    for name, key in GROUP_CONFIGS.items():
        default = DescribeConfigsSynonym(name=BROKER_KEY[name], value=key.format(key.default), source=FROM_DEFAULT)
        synonyms = _layers(BROKER_KEY[name], settings) if BROKER_KEY[name] in KNOWN_KEYS else [default]
        if name in UNUSED_CONFIGS:
            value = _text_of(key, overrides[name]) if name in overrides else synonyms[0].value
        else:
            value = key.format(getattr(effective, BROKER_KEY[name].replace(".", "_")))
        if name in overrides:
            synonyms.insert(0, DescribeConfigsSynonym(name=name, value=value, source=FROM_GROUP))
        entries.append(_entry(name, key, value, synonyms, read_only=False))
    return entries


def describe_client_metrics(overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
    """All settings of a subscription that sets `overrides`; as in Kafka, defaults are no layer of their own here."""
    entries = []
    for name, key in CLIENT_METRICS_CONFIGS.items():
        value = _text_of(key, overrides[name]) if name in overrides else key.format(key.default)
        synonyms = [DescribeConfigsSynonym(name=name, value=value, source=FROM_CLIENT_METRICS)]
        entries.append(_entry(name, key, value, synonyms if name in overrides else [], read_only=False))
    return entries


def describe_broker(settings: DynamicConfig) -> list[DescribeConfigsResourceResult]:
    """All settings of this broker, the broker-wide defaults of topic keys among them.

    Settings of Kafka's that are not used here are shown where they are set.
    """
    visible = [name for name, key in BROKER_KEYS.items() if not key.internal]
    names = sorted({*visible, *settings.config.properties, *settings.for_all, *settings.own})
    return [_broker_entry(name, settings, _layers(name, settings)) for name in names]


def describe_all_brokers(settings: DynamicConfig) -> list[DescribeConfigsResourceResult]:
    """What is set for all brokers, and nothing else."""
    entries = []
    for name in sorted(settings.for_all):
        synonyms = [synonym for synonym in _layers(name, settings) if synonym.source == FROM_ALL_BROKERS]
        entries.append(_broker_entry(name, settings, synonyms))
    return entries


def _broker_entry(
    name: str, settings: DynamicConfig, synonyms: list[DescribeConfigsSynonym]
) -> DescribeConfigsResourceResult:
    own = [synonym for synonym in synonyms if synonym.name == name]
    value = own[0].value if own else None
    read_only = name not in DYNAMIC_NAMES and name not in UNUSED_KEYS
    return _entry(name, KNOWN_KEYS.get(name), value, synonyms, read_only=read_only)


def _names(name: str) -> tuple[str, ...]:
    """The broker-wide names that mean the same as this one, the finest unit first."""
    key = TOPIC_DEFAULTS.get(name)
    if key is None or name == FLUSH_SCHEDULER:
        return (name,)
    return tuple(synonym.name for synonym in key.synonyms)


def _layers(name: str, settings: DynamicConfig) -> list[DescribeConfigsSynonym]:
    """What gives a broker-wide name its value, beginning where that very name is set."""
    synonyms = [
        DescribeConfigsSynonym(name=other, value=_text(other, layer[other]), source=source)
        for source, layer in (
            (FROM_BROKER, settings.own),
            (FROM_ALL_BROKERS, settings.for_all),
            (FROM_STATIC, settings.static.properties),
        )
        for other in _names(name)
        if other in layer
    ]
    for other in _names(name):
        default = _default_text(other)
        if default is not None:
            synonyms.append(DescribeConfigsSynonym(name=other, value=default, source=FROM_DEFAULT))
    return list(dropwhile(lambda synonym: synonym.name != name, synonyms))


def _text(name: str, text: str) -> str | None:
    """A value as it is shown; one of a setting that nobody knows could be a secret, so it is not."""
    key = KNOWN_KEYS.get(name)
    return None if key is None else _text_of(key, text)


def _text_of(key: ConfigKey, text: str) -> str:
    try:
        return key.format(key.parse(text))
    except BadConfigValue:
        return text


def _default_text(name: str) -> str | None:
    """The default of a broker-wide name: of several units of one topic key, only the coarsest has it."""
    key = KNOWN_KEYS.get(name)
    if key is None or key.default is None:
        return None
    for position, synonym in enumerate(key.synonyms):
        if synonym.name == name:
            if position < len(key.synonyms) - 1:
                return None
            if synonym.multiplier != 1:
                assert isinstance(key.default, int), "only whole numbers have units"
                return str(key.default // synonym.multiplier)
    return key.format(key.default)


def _type_number(name: str, key: ConfigKey | None) -> int:
    if key is None:
        return UNKNOWN_TYPE
    has_coarse_unit = any(synonym.name == name and synonym.multiplier != 1 for synonym in key.synonyms)
    return TYPE_NUMBERS[ConfigType.INT if has_coarse_unit else key.type]


def _entry(
    name: str,
    key: ConfigKey | None,
    value: str | None,
    synonyms: list[DescribeConfigsSynonym],
    *,
    read_only: bool,
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else FROM_DEFAULT,
        is_sensitive=key is None,
        synonyms=synonyms,
        config_type=_type_number(name, key),
        documentation=None if key is None else key.documentation,
    )
