"""Ids and dice, injected so that a run can be repeated from its seed."""

from typing import Protocol


class IdSource(Protocol):
    """Where topic ids, directory ids, cluster ids and random choices come from."""

    def uuid(self) -> bytes:
        """16 random bytes, never all zero (Kafka reserves that one) and never Kafka's metadata topic id."""
        ...

    def below(self, limit: int) -> int:
        """An integer from 0 to limit - 1."""
        ...
