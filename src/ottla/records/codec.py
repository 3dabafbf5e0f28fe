"""The compression codecs of record batches, numbered as in the batch's attributes and named as in configs."""

from enum import IntEnum
from typing import Self

from ottla.records.errors import unknown_codec


class Codec(IntEnum):
    """How the records of a batch are compressed (attribute bits 0 to 2)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        """The name in `compression.type`."""
        return self.name.lower()

    @classmethod
    def from_name(cls, name: str) -> Self:
        """The codec of a config's name; `uncompressed`, Kafka's other word for none, is taken too."""
        for codec in cls:
            if name == codec.config_name:
                return codec
        if name == "uncompressed":
            return cls(cls.NONE)
        raise ValueError(f"one of {', '.join(codec.config_name for codec in cls)} expected, {name!r} came")


_BY_NUMBER = tuple(Codec)


def codec_of_attributes(attributes: int) -> Codec:
    """The codec named by a batch's attributes; CorruptRecord for the numbers that mean nothing."""
    number = attributes & 0x07
    if number >= len(_BY_NUMBER):
        raise unknown_codec(number)
    return _BY_NUMBER[number]
