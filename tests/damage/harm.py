"""What can happen to a file: one function for each kind of damage, with dice for where it strikes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

Harm = Callable[[Path, random.Random], None]


def flip_a_bit(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def overwrite_some(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        start = dice.randrange(len(data))
        data[start : start + 40] = dice.randbytes(len(data[start : start + 40]))
    path.write_bytes(data)


def empty(path: Path, dice: random.Random) -> None:
    path.write_bytes(b"")


def halve(path: Path, dice: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def cut_one_byte(path: Path, dice: random.Random) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def remove(path: Path, dice: random.Random) -> None:
    path.unlink()


def add_garbage(path: Path, dice: random.Random) -> None:
    path.write_bytes(path.read_bytes() + dice.randbytes(300))


def add_zeros(path: Path, dice: random.Random) -> None:
    path.write_bytes(path.read_bytes() + bytes(300))


def replace_by_directory(path: Path, dice: random.Random) -> None:
    """Nobody can read it, not even root."""
    path.unlink(missing_ok=True)
    path.mkdir()


HARMS: dict[str, Harm] = {
    "flipped bit": flip_a_bit,
    "overwritten": overwrite_some,
    "empty": empty,
    "half": halve,
    "a byte short": cut_one_byte,
    "missing": remove,
    "garbage added": add_garbage,
    "zeros added": add_zeros,
    "a directory": replace_by_directory,
}
