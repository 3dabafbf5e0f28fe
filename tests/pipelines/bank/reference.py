"""What the pipeline `mybank` must answer, computed in plain Python from what was done, in the order in which it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.pipelines.driving import Run
from tests.pipelines.judged import Fields, judge, verify_rejects

from ottla.pipelines.bank.events import Write
from ottla.pipelines.frame.generating import Event

_LATENESS_MS = 600_000
_BANKS_LIMIT = 1_000_00
_DEMANDS = {"mybank.changes": {"table": str, "op": str, "position": int, "sequence": int, "commit_time": int}}


@dataclass
class Answers:
    """`alerts` are (payment, account, amount, limit); `limits` are those that people have set."""

    alerts: list[tuple[str, str, int, int]] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)

    def take(self, change: Fields) -> None:
        row = change["after"] or change["before"]
        account = row["account"]
        if change["table"] == "thresholds":
            if change["op"] == "delete":
                self.limits.pop(account, None)
            else:
                self.limits[account] = row["limit_cents"]
            return
        is_news = change["op"] == "insert" or (
            change["op"] == "update" and change["before"]["amount_cents"] != change["after"]["amount_cents"]
        )
        limit = self.limits.get(account, _BANKS_LIMIT)
        if is_news and row["amount_cents"] >= limit and row["event_id"] not in {alert[0] for alert in self.alerts}:
            self.alerts.append((row["event_id"], account, row["amount_cents"], limit))


def answers_to_events(events: Sequence[Event]) -> Answers:
    answers = Answers()
    for _, change in judge(events, _DEMANDS, _LATENESS_MS, _holds).once_each():
        answers.take(change)
    return answers


def answers_to_writes(writes: Iterable[Write], history: int) -> Answers:
    """Of a database in which so many were there when capture began."""
    answers = Answers()
    for number, write in enumerate(writes):
        op = "snapshot" if number < history and write.operation != "delete" else str(write.operation)
        change = {"table": write.table, "op": op, "before": write.before, "after": write.after}
        happened = (
            write.after["event_time"] if write.after and op == "insert" and write.table == "transactions" else None
        )
        if isinstance(happened, int) and happened < write.time_ms - _LATENESS_MS:
            continue
        if _holds("mybank.changes", change):
            answers.take(change)
    return answers


def verify(run: Run, events: Sequence[Event]) -> None:
    judged = judge(events, _DEMANDS, _LATENESS_MS, _holds)
    verify_rejects(run, judged)
    verify_answers(run, answers_to_events(events))
    transactions = [change for _, change in judged.once_each() if change["table"] == "transactions"]
    columns = ("event_id", "op", "account", "amount_cents")
    kept = Counter(tuple(row[name] for name in columns) for row in run.lake_rows("transactions"))
    assert kept == Counter(map(_kept, transactions))


def verify_answers(run: Run, expected: Answers) -> None:
    found = Counter(
        (alert["event_id"], alert["account"], alert["amount_cents"], alert["limit_cents"])
        for alert in run.letters("mybank.alerts")
    )
    assert found == Counter(expected.alerts)
    limits = {account: row["limit_cents"] for account, row in run.table("mybank.limits").items()}
    assert limits == expected.limits
    assert expected.alerts, "a run without alerts shows nothing"


def _kept(change: Fields) -> tuple[Any, ...]:
    row = change["after"] or change["before"]
    return change["event_id"], change["op"], row["account"], row["amount_cents"]


def _holds(_topic: str, change: Fields) -> bool:
    if change["op"] == "delete":
        return change["before"]["account"] is not None
    row = change["after"]
    if change["table"] == "thresholds":
        return bool(row["limit_cents"] >= 0)
    return isinstance(row["amount_cents"], int) and row["amount_cents"] > 0 and row["event_id"] is not None
