"""Chance in the hands of a test."""


class Dice:
    """Throws what it was given, then counts up: so that two sessions can be made to draw the same id."""

    def __init__(self, *first: int) -> None:
        self._throws = list(first)
        self._next = 100

    def below(self, limit: int) -> int:
        if self._throws:
            return self._throws.pop(0)
        self._next += 1
        return self._next

    def uuid(self) -> bytes:
        return bytes(range(16))
