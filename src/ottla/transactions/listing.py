"""Which transactions are asked for: ListTransactions with its filters."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.regex import Matcher, RegexError, compile_regex
from ottla.transactions.transaction import STATUS_BY_TITLE, Status, Transaction

NO_DURATION = -1
# What a pattern may cost with all names together, beside its look-ups: about two seconds, in many pieces.
MAX_EFFORT = 10_000_000


@dataclass(frozen=True)
class Filters:
    """Empty ones let everything pass; unknown states let nothing pass and are told back."""

    states: Sequence[str] = ()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = NO_DURATION
    pattern: Matcher | None = None

    @cached_property
    def _wanted(self) -> frozenset[Status]:
        return frozenset(STATUS_BY_TITLE[title] for title in self.states if title in STATUS_BY_TITLE)

    @property
    def unknown_states(self) -> list[str]:
        return [title for title in dict.fromkeys(self.states) if title not in STATUS_BY_TITLE]

    def admit(self, transaction: Transaction, now_ms: int) -> Generator[None, None, bool]:
        """With a pause whenever others should have their turn; `KafkaError` when the pattern takes too long."""
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.states and transaction.status not in self._wanted:
            return False
        if self.duration_ms >= 0 and now_ms - transaction.started_ms <= self.duration_ms:
            return False
        if self.pattern is None:
            return True
        work = self.pattern.match(transaction.transactional_id)
        while True:
            try:
                next(work)
            except StopIteration as end:
                return bool(end.value)
            if self.pattern.effort > MAX_EFFORT:
                raise _no_pattern("it takes too long to match")
            yield


def pattern_of_ids(text: str) -> Matcher:
    """A pattern of whole transactional ids; `KafkaError` when it is none."""
    try:
        return compile_regex(text)
    except RegexError as error:
        raise _no_pattern(str(error)) from None


def _no_pattern(problem: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"this is no pattern of transactional ids: {problem}")
