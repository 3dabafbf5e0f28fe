"""Transactions, as metrics: what this broker coordinates."""

from collections.abc import Iterator

from ottla.broker.metrics_text import COUNTER, GAUGE, Family
from ottla.ledger.ledger import State
from ottla.transactions import TransactionCoordinator

RETRIES = Family(
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize",
    GAUGE,
    "Transactions that are decided, and of which something could not be written: it is tried again.",
)
LOAD_TIME = Family(
    "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
    GAUGE,
    "The longest that loading a partition of __transaction_state took since the start, in milliseconds.",
)
FAILED_VERIFICATIONS = Family(
    "kafka_server_addpartitionstotxnmanager_verificationfailurerate_total",
    COUNTER,
    "Times that a partition was in no transaction of the producer that wrote to it.",
)
IDS = Family("ottla_transactional_ids", GAUGE, "Transactional ids that are remembered.")
OPEN = Family("ottla_transactions_open", GAUGE, "Transactions that are open.")
ENDING = Family("ottla_transactions_ending", GAUGE, "Transactions that are decided and not complete yet.")

FAMILIES = (RETRIES, LOAD_TIME, FAILED_VERIFICATIONS, IDS, OPEN, ENDING)


def transaction_lines(coordinator: TransactionCoordinator) -> Iterator[str]:
    """Text in small pieces; an empty one where there was work but nothing to say."""
    retries = ids = opened = ending = 0
    for ledger in coordinator.topic:
        if ledger.state is State.READY:
            machine = ledger.machine
            retries += sum(each.is_backing_off for each in machine.endings.values())
            ids += len(machine.transactions)
            opened += len(machine.ongoing)
            ending += len(machine.endings)
        yield ""
    yield RETRIES.head + RETRIES.line(retries)
    yield LOAD_TIME.head + LOAD_TIME.line(coordinator.topic.longest_load_ms)
    yield FAILED_VERIFICATIONS.head + FAILED_VERIFICATIONS.line(coordinator.failed_verifications)
    yield IDS.head + IDS.line(ids)
    yield OPEN.head + OPEN.line(opened)
    yield ENDING.head + ENDING.line(ending)
