"""The options of the sink: those of Spark's connector, and how rows are delivered.

| option                  | meaning                                                             | default       |
|-------------------------|---------------------------------------------------------------------|---------------|
| `kafka.*`               | settings of the producers                                           |               |
| `topic`                 | where all rows go; wins over a column of that name                  |               |
| `deliveryGuarantee`     | `at-least-once`, or `exactly-once`: rows appear once, batch by batch | at-least-once |
| `transactionalIdPrefix` | exactly-once: how the names of all transactional ids begin          | ottla-spark   |
| `decisionsTopic`        | exactly-once: the topic that says which batches were decided        | (below)       |
| `handOverBytes`         | exactly-once: rows of a task that the driver writes by itself, at most | 65536      |
| `failOnDataLoss`        | exactly-once: whether to fail when a decided transaction was lost   | true          |
| `txnAppId`, `txnVersion` | batch writes: a name, a growing number; the same ones write once   |               |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ottla.client.config import ProducerConfig, resolve
from ottla.client.errors import ConfigError
from ottla.spark.client_settings import client_settings

DECISIONS_TOPIC = "__ottla_spark_decisions"
TRANSACTIONAL_ID_PREFIX = "ottla-spark"

# What brokers allow at most unless they are told otherwise (transaction.max.timeout.ms): a staged transaction has to
# outlive the slowest task of its batch, and a driver that is started again.
STAGED_TIMEOUT_MS = 900_000
# The messages of a thousand tasks with as much are what a driver easily holds.
_HAND_OVER_BYTES = 64 * 1024
_TIMEOUT = "transaction.timeout.ms"
_CLIENT_ID = "client.id"


class Guarantee(Enum):
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True)
class SinkOptions:
    """What the options say. It is pickled into every task."""

    topic: str | None
    guarantee: Guarantee
    producer_settings: Mapping[str, object]
    admin_settings: Mapping[str, object]
    transactional_id_prefix: str
    decisions_topic: str
    fails_on_data_loss: bool
    hand_over_bytes: int
    numbered: tuple[str, int] | None = None

    @property
    def is_exactly_once(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE

    @property
    def staging_settings(self) -> dict[str, object]:
        """Of producers whose transactions stay open until the batch is decided."""
        return {_TIMEOUT: STAGED_TIMEOUT_MS, **self.producer_settings}

    def connection_settings(self, role: str) -> dict[str, object]:
        """Of clients that the sink has beside its producers; they are named, so that a broker's operator knows them."""
        own = self.admin_settings.get(_CLIENT_ID, "ottla-spark")
        return {**self.admin_settings, _CLIENT_ID: f"{own}-{role}"}


def read_options(options: Mapping[str, str]) -> SinkOptions:
    """What the options of a write mean, or ConfigError with the option's name and what it takes."""
    given = {name.lower(): value for name, value in options.items()}
    guarantee = _guarantee(given)
    producer_settings = client_settings(options, role="sink")
    if guarantee is Guarantee.EXACTLY_ONCE:
        _check_transactional(producer_settings)
    return SinkOptions(
        topic=_name(given, "topic"),
        guarantee=guarantee,
        producer_settings=producer_settings,
        admin_settings=client_settings(options, role="admin"),
        transactional_id_prefix=_name(given, "transactionalIdPrefix") or TRANSACTIONAL_ID_PREFIX,
        decisions_topic=_name(given, "decisionsTopic") or DECISIONS_TOPIC,
        fails_on_data_loss=_truth(given, "failOnDataLoss", default=True),
        hand_over_bytes=_byte_count(given, "handOverBytes", _HAND_OVER_BYTES),
        numbered=_numbered(given),
    )


def _numbered(given: Mapping[str, str]) -> tuple[str, int] | None:
    """The names are those that Delta Lake has for the same purpose."""
    name, version = _name(given, "txnAppId"), _name(given, "txnVersion")
    if name is None and version is None:
        return None
    if name is None or version is None:
        raise ConfigError("options txnAppId and txnVersion go together: give both, or neither")
    if not (version.isascii() and version.isdecimal()):
        raise ConfigError(f"option txnVersion cannot be {version!r}: it takes a whole number, such as a batch's")
    return name, int(version)


def _guarantee(given: Mapping[str, str]) -> Guarantee:
    text = given.get("deliveryguarantee", Guarantee.AT_LEAST_ONCE.value).strip().lower()
    for guarantee in Guarantee:
        if guarantee.value == text:
            return guarantee
    allowed = " or ".join(guarantee.value for guarantee in Guarantee)
    raise ConfigError(f"option deliveryGuarantee cannot be {text!r}: it takes {allowed}")


def _byte_count(given: Mapping[str, str], option: str, default: int) -> int:
    text = given.get(option.lower(), str(default)).strip()
    if not (text.isascii() and text.isdecimal()):
        raise ConfigError(f"option {option} cannot be {text!r}: it takes a whole number of bytes, 0 or more")
    return int(text)


def _name(given: Mapping[str, str], option: str) -> str | None:
    text = given.get(option.lower())
    if text is None:
        return None
    if not text.strip():
        raise ConfigError(f"option {option} is empty: leave it out, or give it a name")
    return text.strip()


def _truth(given: Mapping[str, str], option: str, *, default: bool) -> bool:
    text = given.get(option.lower())
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise ConfigError(f"option {option} cannot be {text!r}: it takes true or false")
    return text.strip().lower() == "true"


def _check_transactional(settings: Mapping[str, object]) -> None:
    """Transactions need acks=all and idempotence; better said before a task is."""
    transactional: dict[str, Any] = {**settings, "transactional.id": "checked"}
    try:
        resolve(ProducerConfig, config=transactional)
    except ConfigError as error:
        raise ConfigError(
            f"option deliveryGuarantee=exactly-once does not go with the kafka.* options: {error}"
        ) from None
