"""Subscriptions to the metrics of clients (KIP-714): which clients push which metrics, and how often.

A subscription is its settings: it can be set, described, listed and deleted, and outlives the broker. It has no effect
here, since this broker offers clients no telemetry.
"""

from collections.abc import Mapping

from ottla.log.config_keys import BadConfigValue, ConfigKey, ConfigType, between
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.regex import RegexError, compile_regex

INTERVAL, METRICS, MATCH = "interval.ms", "metrics", "match"
_INTERVALS = between(100, 3_600_000)
CLIENT_METRICS_CONFIGS: dict[str, ConfigKey] = {
    key.name: key
    for key in (
        ConfigKey(INTERVAL, ConfigType.INT, 300_000, None, "How often clients would push, in milliseconds."),
        ConfigKey(MATCH, ConfigType.LIST, (), None, "Which clients: selector=pattern, all of which must match."),
        ConfigKey(METRICS, ConfigType.LIST, (), None, "What the names of the metrics begin with; * is all."),
    )
}
_SELECTORS = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Raise `KafkaError` unless a subscription may have these settings. The codes are Kafka's, which has two."""
    unknown = sorted(configs.keys() - CLIENT_METRICS_CONFIGS.keys())
    if unknown:
        message = f"{', '.join(CLIENT_METRICS_CONFIGS)} expected of a subscription, {', '.join(unknown)} came"
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    for name, text in configs.items():
        try:
            value = CLIENT_METRICS_CONFIGS[name].parse(text)
        except BadConfigValue as expected:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} is {text!r}: it must be {expected}") from None
        if isinstance(value, tuple) and "" in value:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} is {text!r}: its items must not be empty")
        if name == INTERVAL and not _INTERVALS.accepts(value):
            message = f"{name} is {text!r}: it must be {_INTERVALS.description}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        if name == MATCH and isinstance(value, tuple):
            for item in value:
                _check_match(item)


def _check_match(item: str) -> None:
    selector, *patterns = (part.strip() for part in item.split("="))
    problem = ""
    if selector not in _SELECTORS or len(patterns) != 1:
        problem = f"a pattern for one of {', '.join(_SELECTORS)} expected, such as client_id=app-.*"
    else:
        try:
            compile_regex(patterns[0])
        except RegexError as error:
            problem = str(error)
    if problem:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"match has {item!r}: {problem}")
