"""What a call about many things gives back: for each of them a value, or the error that it met."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from ottla.client.errors import OttlaError, SomeFailed

Key = TypeVar("Key")
Value_co = TypeVar("Value_co", covariant=True)


class Results(Mapping[Key, Value_co], Generic[Key, Value_co]):
    """One entry for each thing that was asked for, in the order in which it was asked.

    `results[key]` is the value, or raises the error of that key. Iterating gives the keys, those that failed too;
    `succeeded` and `errors` have only the one kind.

        results = await admin.create_topics(["orders", "bills"])
        results["orders"].topic_id      # raises if "orders" was refused
        results.errors                  # {"bills": BrokerError(...)}
        results.raise_for_errors()      # does nothing when all went well
    """

    def __init__(self, outcomes: Mapping[Key, Value_co | OttlaError]) -> None:
        self._outcomes = dict(outcomes)

    def __getitem__(self, key: Key) -> Value_co:
        outcome = self._outcomes[key]
        if isinstance(outcome, OttlaError):
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[Key]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, key: object) -> bool:
        return key in self._outcomes

    def __repr__(self) -> str:
        return f"Results({self._outcomes!r})"

    @property
    def succeeded(self) -> dict[Key, Value_co]:
        return {key: outcome for key, outcome in self._outcomes.items() if not isinstance(outcome, OttlaError)}

    @property
    def errors(self) -> dict[Key, OttlaError]:
        return {key: outcome for key, outcome in self._outcomes.items() if isinstance(outcome, OttlaError)}

    def raise_for_errors(self) -> "Results[Key, Value_co]":
        """The results themselves when nothing failed; else the error, or SomeFailed where there are several."""
        errors = self.errors
        if len(errors) == 1:
            raise next(iter(errors.values()))
        if errors:
            raise SomeFailed(errors)
        return self


def merged(parts: Iterable[Mapping[Key, Value_co | OttlaError]]) -> dict[Key, Value_co | OttlaError]:
    outcomes: dict[Key, Value_co | OttlaError] = {}
    for part in parts:
        outcomes.update(part)
    return outcomes
