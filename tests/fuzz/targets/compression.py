"""Compressed payloads of every codec. The first byte chooses it; the rest should be one of its frames.

What must hold: they are refused as corrupt or read, no more than the limit ever comes out, and what came out
survives being compressed again.
"""

import random
from collections.abc import Hashable, Iterable

from tests.fuzz.target import Finding, PlainTarget

from ottla.records import Codec
from ottla.records.compression import compress, decompress
from ottla.records.errors import CorruptRecord

LIMIT_BYTES = 64 * 1024
CODECS = tuple(codec for codec in Codec if codec is not Codec.NONE)


class CompressionTarget(PlainTarget):
    name = "compression"
    longest_bytes = 4096

    def seeds(self) -> list[bytes]:
        plains = (b"", b"x", bytes(range(256)) * 40, bytes(200_000))
        return [bytes([number, *compress(codec, plain)]) for number, codec in enumerate(CODECS) for plain in plains]

    def run(self, data: bytes) -> Iterable[Hashable]:
        if not data:
            return ()
        codec = CODECS[data[0] % len(CODECS)]
        try:
            plain = bytes(decompress(codec, data[1:], LIMIT_BYTES))
        except CorruptRecord as error:
            # The words of a codec's library say how far it came; its code has no branches that could be seen.
            return {(codec, "".join(letter for letter in str(error) if not letter.isdigit())[:120])}
        if len(plain) > LIMIT_BYTES:
            raise Finding(f"{len(plain)} bytes came out of {codec.config_name}; {LIMIT_BYTES} are allowed")
        if bytes(decompress(codec, compress(codec, plain), LIMIT_BYTES)) != plain:
            raise Finding(f"{codec.config_name} does not give back what it was given")
        return {(codec, len(plain).bit_length(), len(data).bit_length())}

    def mutate(self, dice: random.Random, data: bytes, other: bytes) -> bytes | None:
        number = dice.randrange(len(CODECS))
        if dice.random() < 0.3:
            return data + other[1:]
        plain = dice.choice((b"", b"x", dice.randbytes(40), bytes(dice.choice((100, 70_000, 1 << 20)))))
        return bytes([number]) + bytes(compress(CODECS[number], plain))
