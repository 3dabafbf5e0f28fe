"""What a guided target is: code of the broker that takes bytes from outside, and what must hold for all of them."""

import random
from collections.abc import Hashable, Iterable
from typing import Protocol


class Finding(Exception):
    """Something that must never happen, whatever bytes come. Any other exception out of `run` is one as well."""


class Target(Protocol):
    """`format_share` of the inputs are made by `mutate`; the others by changes that know nothing but bytes."""

    name: str
    longest_bytes: int
    format_share: float

    def seeds(self) -> list[bytes]:
        """Inputs to begin with: the more the code makes of them, the better."""
        ...

    def run(self, data: bytes) -> Iterable[Hashable]:
        """Hand the bytes to the code, and raise unless all that must hold does. What may be refused is caught here.

        What it gives back are features beside the branches: an input that shows a new one is kept, too.
        """
        ...

    def mutate(self, dice: random.Random, data: bytes, other: bytes) -> bytes | None:
        """A change that knows the format; None where it does not fit."""
        ...

    def history(self) -> list[bytes]:
        """The inputs before this one that it may depend on, oldest first; empty where each starts afresh."""
        ...

    def forget(self) -> None:
        """Start afresh: drop what earlier inputs left behind."""
        ...


class PlainTarget:
    """One that keeps nothing from one input to the next and knows no format."""

    name = ""
    longest_bytes = 2048
    format_share = 0.4

    def seeds(self) -> list[bytes]:
        return []

    def run(self, data: bytes) -> Iterable[Hashable]:
        raise NotImplementedError

    def mutate(self, dice: random.Random, data: bytes, other: bytes) -> bytes | None:
        return None

    def history(self) -> list[bytes]:
        return []

    def forget(self) -> None:
        """Nothing is kept."""
