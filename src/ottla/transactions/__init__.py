"""Transactions: which producer has a transactional id, and how its transactions end. Kept in `__transaction_state`.

- `entries`: the records, in Kafka's format
- `transaction`: what is kept of a transactional id, and every step that it can take
- `ending`: what becomes of an EndTxn, in each state
- `machine`: the ids of one partition: decisions about them, and their replay
- `markers`: carrying out what was decided: a marker in every partition of the transaction
- `coordinator`: all partitions that this broker leads; what handlers ask
- `listing`, `patterns`: which transactions are asked for

docs/TRANSACTIONS.md says what producers and readers may rely on.
"""

from ottla.transactions.coordinator import TransactionCoordinator
from ottla.transactions.machine import TransactionContext
from ottla.transactions.markers import EndedTransaction, MarkerErrors, MarkerWriter
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.transaction import Status, TopicPartition, Transaction

__all__ = [
    "EndedTransaction",
    "MarkerErrors",
    "MarkerWriter",
    "Status",
    "TopicPartition",
    "Transaction",
    "TransactionContext",
    "TransactionCoordinator",
    "TransactionSettings",
]
