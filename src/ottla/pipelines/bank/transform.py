"""From changes in the bank's database to alerts and limits."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ottla.pipelines.bank.alerting import LIMIT, NO_LIMIT, PAYMENT, Account, Alert, Step
from ottla.pipelines.bank.events import THRESHOLDS, TRANSACTIONS

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

_STEP = (
    "incarnation",
    "position",
    "sequence",
    "kind",
    "cents",
    "payment",
    "transaction_id",
    "event_time",
    "commit_time",
)
_RECORD = "topic STRING, key STRING, value STRING"
# Spark 4.2 does not take an array as part of a state: the ids are a JSON array.
_ACCOUNT = "limit_cents BIGINT, incarnation BIGINT, position BIGINT, sequence BIGINT, alerted STRING"


def steps(changes: "DataFrame") -> "DataFrame":
    """What matters of changes, by account: limits, and payments that are new or have another amount. Rows that were
    there before capture began are history: their limits hold, but nobody is told of their payments."""
    is_limit = F.col("table") == THRESHOLDS
    is_gone = F.col("op") == "delete"
    is_payment = (F.col("table") == TRANSACTIONS) & (
        (F.col("op") == "insert")
        | ((F.col("op") == "update") & ~F.col("before.amount_cents").eqNullSafe(F.col("after.amount_cents")))
    )
    kind = F.when(is_limit & is_gone, NO_LIMIT).when(is_limit, LIMIT).when(is_payment, PAYMENT)
    return changes.select(
        F.coalesce("after.account", "before.account").alias("account"),
        F.coalesce("incarnation", F.lit(0)).alias("incarnation"),
        "position",
        "sequence",
        kind.alias("kind"),
        F.coalesce("after.amount_cents", "after.limit_cents", F.lit(0)).alias("cents"),
        F.coalesce("after.event_id", F.lit("")).alias("payment"),
        F.coalesce("after.id", F.lit(0)).alias("transaction_id"),
        F.unix_millis("event_time").alias("event_time"),
        "commit_time",
    ).where(F.col("kind").isNotNull())


def told(found: "DataFrame", alerts: str, limits: str) -> "DataFrame":
    """Records for the topics of alerts and of limits. The steps of an account are taken in commit order: a micro-batch
    has all up to some offset of the account's partition, and here they are sorted, so it does not matter where it is
    cut."""

    def follow(key: tuple[str], frames: Iterator["pd.DataFrame"], state: GroupState) -> Iterator["pd.DataFrame"]:
        import pandas as pd

        account = _account_of(state)
        coming = (Step(*values) for frame in frames for values in _plain_rows(frame))
        records = [
            _record(key[0], result, alerts, limits)
            for step in sorted(coming, key=lambda step: step.place)
            if (result := account.take(step)) is not None
        ]
        state.update((account.limit_cents, *account.place, json.dumps(account.alerted)))
        yield pd.DataFrame(records, columns=["topic", "key", "value"], dtype=object)

    return found.groupBy("account").applyInPandasWithState(
        follow, _RECORD, _ACCOUNT, "append", GroupStateTimeout.NoTimeout
    )


def history(changes: "DataFrame") -> "DataFrame":
    """Every state of every transaction, for the analytics store."""
    is_transaction = F.col("table") == TRANSACTIONS
    row = F.coalesce("after", "before")
    return changes.where(is_transaction).select(
        "event_id",
        "op",
        "position",
        "sequence",
        F.timestamp_millis("commit_time").alias("commit_time"),
        row.account.alias("account"),
        row.id.alias("transaction_id"),
        row.amount_cents.alias("amount_cents"),
        F.timestamp_millis(row.event_time).alias("booked_at"),
        F.to_date(F.timestamp_millis("commit_time")).alias("date"),
    )


def _account_of(state: GroupState) -> Account:
    if not state.exists:
        return Account()
    limit_cents, incarnation, position, sequence, alerted = state.get
    return Account(limit_cents, (incarnation, position, sequence), json.loads(alerted))


def _plain_rows(frame: "pd.DataFrame") -> Iterator[list[Any]]:
    columns = [frame[name].tolist() for name in _STEP]
    yield from map(list, zip(*columns, strict=True))


def _record(account: str, result: Alert | Step, alerts: str, limits: str) -> tuple[str, str, str | None]:
    if isinstance(result, Alert):
        step = result.step
        alert = {
            "event_id": step.payment,
            "account": account,
            "transaction_id": step.transaction_id,
            "amount_cents": step.cents,
            "limit_cents": result.limit_cents,
            "event_time": step.event_time,
            "commit_time": step.commit_time,
        }
        return alerts, account, json.dumps(alert)
    if result.kind == NO_LIMIT:
        return limits, account, None
    limit = {"account": account, "limit_cents": result.cents, "since": result.commit_time}
    return limits, account, json.dumps(limit)
