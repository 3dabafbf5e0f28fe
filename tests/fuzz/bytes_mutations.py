"""Changes to bytes of which nothing is known, and one that is guided by what the code compared."""

import random
import struct
from collections.abc import Callable, Sequence

from tests.fuzz.instrument import Pair

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x20, 0x30, 0x0A)
NUMBERS = (0, 1, -1, 2, 127, 128, 255, 256, 32_767, -32_768, 65_535, 65_536, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
MOST_CHANGES = 6
PAIRS_TRIED = 4
SURE_BYTES = 2
# A long piece that stands in the input is hardly there by chance.
LONGEST_FIRST_SHARE = 0.7


def change_bit(dice: random.Random, data: bytearray, other: bytes) -> None:
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def change_byte(dice: random.Random, data: bytearray, other: bytes) -> None:
    data[dice.randrange(len(data))] = dice.choice(INTERESTING) if dice.random() < 0.5 else dice.getrandbits(8)


def add_a_little(dice: random.Random, data: bytearray, other: bytes) -> None:
    position = dice.randrange(len(data))
    data[position] = (data[position] + dice.randint(-16, 16)) & 0xFF


def put_number(dice: random.Random, data: bytearray, other: bytes) -> None:
    size = dice.choice((2, 4, 8))
    position = dice.randrange(len(data))
    number = dice.choice(NUMBERS) & ((1 << 8 * size) - 1)
    data[position : position + size] = number.to_bytes(size, dice.choice(("big", "big", "little")))


def delete_piece(dice: random.Random, data: bytearray, other: bytes) -> None:
    position = dice.randrange(len(data))
    del data[position : position + _small(dice)]


def repeat_piece(dice: random.Random, data: bytearray, other: bytes) -> None:
    position = dice.randrange(len(data))
    piece = bytes(data[position : position + _small(dice)])
    data[position:position] = piece * dice.choice((1, 1, 2, 8))


def insert_noise(dice: random.Random, data: bytearray, other: bytes) -> None:
    position = dice.randint(0, len(data))
    data[position:position] = dice.randbytes(_small(dice))


def take_from_other(dice: random.Random, data: bytearray, other: bytes) -> None:
    if other:
        start = dice.randrange(len(other))
        piece = other[start : start + dice.randint(1, len(other))]
        position = dice.randint(0, len(data))
        data[position : position + dice.choice((0, len(piece)))] = piece


def cut_and_join(dice: random.Random, data: bytearray, other: bytes) -> None:
    data[dice.randint(0, len(data)) :] = other[dice.randint(0, len(other)) :]


def _small(dice: random.Random) -> int:
    return dice.choice((1, 1, 2, 4, 8, dice.randint(1, 64)))


CHANGES: tuple[Callable[[random.Random, bytearray, bytes], None], ...] = (
    change_bit,
    change_byte,
    change_byte,
    add_a_little,
    put_number,
    put_number,
    delete_piece,
    repeat_piece,
    insert_noise,
    take_from_other,
    cut_and_join,
)


def havoc(dice: random.Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.randint(1, MOST_CHANGES)):
        if not changed:
            changed += dice.randbytes(_small(dice))
        dice.choice(CHANGES)(dice, changed, other)
    return bytes(changed)


def _forms(number: int) -> list[bytes]:
    """The ways in which a number may stand in the bytes."""
    forms = [str(number).encode()]
    for size, code in ((8, ">q"), (4, ">i"), (2, ">h"), (1, ">b")):
        if -(1 << 8 * size - 1) <= number < 1 << 8 * size:
            forms.append(struct.pack(code.upper() if number >= 0 else code, number))
    forms += [form[::-1] for form in forms[1:] if len(form) > 1]
    if 0 <= number < 1 << 63:
        forms.append(_varint(number))
    if -(1 << 63) <= number < 1 << 63:
        forms.append(_varint((number << 1) ^ (number >> 63)))
    return forms


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _swaps(pair: Pair) -> list[tuple[bytes, bytes]]:
    """What may be found in the bytes, and what would have to stand there for the comparison to hold."""
    swaps: list[tuple[bytes, bytes]] = []
    for have, want in (pair, pair[::-1]):
        if isinstance(have, int) and isinstance(want, int):
            haves, wants = _forms(have), _forms(want)
            swaps += [(one, other) for one in haves for other in wants if len(one) == len(other)]
            swaps += [(haves[0], wants[0]), (haves[-1], wants[-1])]
        elif isinstance(have, bytes) and isinstance(want, bytes):
            swaps.append((have, want))
    return swaps


def satisfy(dice: random.Random, data: bytes, pairs: Sequence[Pair]) -> bytes | None:
    """Put in what the code compared a piece of the input with; None when that piece is not found."""
    for pair in dice.sample(pairs, min(len(pairs), PAIRS_TRIED)):
        swaps = _swaps(pair)
        dice.shuffle(swaps)
        if dice.random() < LONGEST_FIRST_SHARE:
            swaps.sort(key=lambda swap: -len(swap[0]))
        for have, want in swaps:
            if have and have != want and (position := _find(dice, data, have)) >= 0:
                return data[:position] + want + data[position + len(have) :]
    return None


def satisfied(data: bytes, pair: Pair) -> list[bytes]:
    """The inputs for which a comparison would most likely hold: its longest form, in the first and the last place."""
    for have, want in sorted(_swaps(pair), key=lambda swap: -len(swap[0])):
        first = data.find(have)
        if len(have) >= SURE_BYTES and have != want and first >= 0:
            places = sorted({first, data.rfind(have)})
            return [data[:place] + want + data[place + len(have) :] for place in places]
    return []


def _find(dice: random.Random, data: bytes, piece: bytes) -> int:
    """One of the places where the piece stands, looked for from anywhere and then from the beginning."""
    position = data.find(piece, dice.randint(0, len(data)))
    return position if position >= 0 else data.find(piece)
