"""The broker's keys for transactions, under Kafka's names."""

from collections.abc import Mapping

from ottla.log.config_keys import ConfigKey, ConfigType, ConfigValue, at_least
from ottla.transactions.settings import TransactionSettings

_INT, _SHORT = ConfigType.INT, ConfigType.SHORT
_DEFAULTS = TransactionSettings()
WAIT_MS = "add.partitions.to.txn.retry.backoff.max.ms"

TRANSACTION_KEYS = (
    ConfigKey(
        "transaction.max.timeout.ms",
        _INT,
        _DEFAULTS.transaction_max_timeout_ms,
        at_least(1),
        "The longest timeout that a producer may ask for its transactions.",
    ),
    ConfigKey(
        "transactional.id.expiration.ms",
        _INT,
        _DEFAULTS.transactional_id_expiration_ms,
        at_least(1),
        "How long a transactional id is remembered after its last use.",
    ),
    ConfigKey(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        _INT,
        _DEFAULTS.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        at_least(1),
        "How often transactions that are open beyond their timeout are looked for, and aborted.",
    ),
    ConfigKey(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        _INT,
        _DEFAULTS.transaction_remove_expired_transaction_cleanup_interval_ms,
        at_least(1),
        "How often transactional ids that have expired are looked for, and forgotten.",
    ),
    ConfigKey(
        "transaction.state.log.num.partitions",
        _INT,
        _DEFAULTS.transaction_state_log_num_partitions,
        at_least(1),
        "Partitions of __transaction_state, when it is created.",
    ),
    ConfigKey(
        "transaction.state.log.replication.factor",
        _SHORT,
        _DEFAULTS.transaction_state_log_replication_factor,
        at_least(1),
        "Replicas of __transaction_state, when it is created; one on a broker that is alone.",
    ),
    ConfigKey(
        "transaction.state.log.min.isr",
        _INT,
        _DEFAULTS.transaction_state_log_min_isr,
        at_least(1),
        "min.insync.replicas of __transaction_state, when it is created.",
    ),
    ConfigKey(
        "transaction.state.log.segment.bytes",
        _INT,
        _DEFAULTS.transaction_state_log_segment_bytes,
        at_least(1),
        "segment.bytes of __transaction_state, when it is created: smaller ones load faster.",
    ),
)


def transaction_settings(values: Mapping[str, ConfigValue]) -> TransactionSettings:
    named = {key.name.replace(".", "_"): values[key.name] for key in TRANSACTION_KEYS}
    numbers = {name: value for name, value in named.items() if isinstance(value, int)}
    waits = values[WAIT_MS]  # The key is with Produce, which asks again for as long.
    assert len(numbers) == len(named), "all keys are whole numbers"
    assert isinstance(waits, int)
    return TransactionSettings(**numbers, verification_wait_ms=waits)
