"""State that lives as the records of a partition: what a coordinator knows, and how it comes to know it.

    event -> decide -> (entries, answer) -> append -> replay -> committed -> the answer leaves

- `entries`: what such a record says, as declared messages with a type and a version
- `machine`: what a coordinator has to be: it decides, and it replays
- `ledger`: one partition with its machine: decisions one after another, timers, loading
- `ledger_topic`: the partitions of an internal topic, in step with what this broker leads

A start, and later another broker, replays the same records through the same code.
"""

from ottla.ledger.entries import Entry, LedgerKey, LedgerValue, RecordTypes
from ottla.ledger.ledger import Ledger
from ottla.ledger.ledger_topic import LedgerTopic, partition_for, replication_factor
from ottla.ledger.machine import Decision, Machine, Replayed, Timers, Writer

__all__ = [
    "Decision",
    "Entry",
    "Ledger",
    "LedgerKey",
    "LedgerTopic",
    "LedgerValue",
    "Machine",
    "RecordTypes",
    "Replayed",
    "Timers",
    "Writer",
    "partition_for",
    "replication_factor",
]
