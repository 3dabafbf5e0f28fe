"""Codecs: the frames that are written, the frames that are read, and frames that mean harm."""

from __future__ import annotations

import gzip
import random
import struct
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard

from ottla.protocol.errors import ErrorCode
from ottla.records import Codec, CorruptRecord, DecompressedTooLarge, Record, build_batch, read_records
from ottla.records.compression import compress, decompress

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"".join(b"line %d of a text that compresses\n" % number for number in range(5_000))
NOISE = b"".join(zlib.crc32(struct.pack(">i", number)).to_bytes(4, "big") for number in range(40_000))
MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, bytes(3 * MEGABYTE)], ids=len)
def test_what_goes_in_comes_out(codec: Codec, data: bytes) -> None:
    packed = compress(codec, data)
    assert decompress(codec, packed) == data
    assert decompress(codec, memoryview(bytearray(packed))) == data
    assert compress(codec, memoryview(data)) == packed


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 9), (Codec.LZ4, 12), (Codec.ZSTD, 19), (Codec.ZSTD, -5)])
def test_levels_change_the_size_not_the_content(codec: Codec, level: int) -> None:
    packed = compress(codec, TEXT, level)
    assert len(packed) != len(compress(codec, TEXT))
    assert decompress(codec, packed) == TEXT


def test_codecs_have_the_names_of_the_config() -> None:
    assert [codec.config_name for codec in Codec] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert all(Codec.from_name(codec.config_name) is codec for codec in Codec)
    assert Codec.from_name("uncompressed") is Codec.NONE
    with pytest.raises(ValueError, match="one of none, gzip, snappy, lz4, zstd expected, 'brotli' came"):
        Codec.from_name("brotli")


def test_snappy_is_written_as_snappy_java_writes_it() -> None:
    packed = bytes(compress(Codec.SNAPPY, NOISE))
    assert packed[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    position, blocks = 16, []
    while position < len(packed):
        (size,) = struct.unpack_from(">i", packed, position)
        blocks.append(bytes(cramjam.snappy.decompress_raw(packed[position + 4 : position + 4 + size])))
        position += 4 + size
    assert b"".join(blocks) == NOISE
    assert [len(block) for block in blocks[:-1]] == [32 * 1024] * (len(blocks) - 1)


@pytest.mark.parametrize(("size_bytes", "block_bytes"), [(64 * 1024, 64 * 1024), (64 * 1024 + 1, 256 * 1024)])
def test_lz4_frames_are_what_java_can_read(size_bytes: int, block_bytes: int) -> None:
    assert len(TEXT) > size_bytes
    info = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT[:size_bytes]))
    assert info["block_size"] == block_bytes
    assert info["block_linked"] is False
    assert info["content_checksum"] is False
    assert info["block_checksum"] is False
    assert info["content_size"] == 0


def test_zstd_frames_have_no_content_size() -> None:
    parameters = zstandard.get_frame_parameters(compress(Codec.ZSTD, TEXT))
    assert parameters.content_size == zstandard.CONTENTSIZE_UNKNOWN
    assert not parameters.has_checksum


def foreign_frames() -> list[tuple[Codec, str, bytes]]:
    checked = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True)
    streaming = zstandard.ZstdCompressor().compressobj()
    streamed = b"".join(
        [
            streaming.compress(TEXT[:70_000]),
            streaming.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK),
            streaming.compress(TEXT[70_000:]),
            streaming.flush(),
        ]
    )
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"hello"
    half = len(TEXT) // 2
    return [
        (Codec.GZIP, "two members", gzip.compress(TEXT[:half]) + gzip.compress(TEXT[half:])),
        (Codec.SNAPPY, "raw, as librdkafka writes it", bytes(cramjam.snappy.compress_raw(TEXT))),
        (Codec.SNAPPY, "joined", bytes(compress(Codec.SNAPPY, TEXT[:half])) + compress(Codec.SNAPPY, TEXT[half:])),
        (
            Codec.LZ4,
            "linked blocks, checksums, size",
            lz4.frame.compress(TEXT, block_linked=True, content_checksum=True, block_checksum=True, store_size=True),
        ),
        (Codec.LZ4, "two frames", lz4.frame.compress(TEXT[:half]) + lz4.frame.compress(TEXT[half:])),
        (Codec.ZSTD, "checksum and size", checked.compress(TEXT)),
        (Codec.ZSTD, "streamed", streamed),
        (
            Codec.ZSTD,
            "two frames and a skippable one",
            checked.compress(TEXT[:half]) + skippable + checked.compress(TEXT[half:]),
        ),
        (Codec.ZSTD, "small window", zstandard.ZstdCompressor(level=1).compress(TEXT)),
    ]


FOREIGN = foreign_frames()


@pytest.mark.parametrize(
    ("codec", "what", "packed"), FOREIGN, ids=[f"{codec.name}-{what}" for codec, what, _ in FOREIGN]
)
def test_every_valid_frame_is_read(codec: Codec, what: str, packed: bytes) -> None:
    assert decompress(codec, packed) == TEXT


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_cut_frame_is_corrupt_wherever_it_is_cut(codec: Codec) -> None:
    packed = bytes(compress(codec, TEXT))
    places = {1, 2, 3, 5, 9, 15, 17, 19, len(packed) // 2, len(packed) - 5, len(packed) - 1}
    for place in sorted(places):
        with pytest.raises(CorruptRecord):
            decompress(codec, packed[:place])


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("tail", [b"\x00", b"garbage", b"\x00" * 40])
def test_bytes_after_the_frame_are_corrupt(codec: Codec, tail: bytes) -> None:
    with pytest.raises(CorruptRecord):
        decompress(codec, bytes(compress(codec, TEXT)) + tail)


def test_flipped_bits_give_corrupt_record_or_other_bytes_and_nothing_else() -> None:
    for codec in COMPRESSED:
        packed = bytes(compress(codec, TEXT[:3_000]))
        for position in range(len(packed)):
            bad = bytearray(packed)
            bad[position] ^= 0x41
            try:
                decompress(codec, bad, MEGABYTE)
            except CorruptRecord:
                continue


def bombs() -> list[tuple[Codec, bytes]]:
    data = bytes(64 * MEGABYTE)
    return [(codec, bytes(compress(codec, data))) for codec in COMPRESSED]


def test_a_bomb_is_given_up_at_the_limit() -> None:
    for codec, packed in bombs():
        with pytest.raises(DecompressedTooLarge, match=f"{codec.config_name} batch: at most 1048576 bytes") as caught:
            decompress(codec, packed, MEGABYTE)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_limit_itself_is_allowed(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, len(TEXT) - 1)


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("has_more", [False, True])
def test_large_lz4_frames_are_read_and_limited_whatever_their_blocks(block_size: int, has_more: bool) -> None:
    data = random.Random(block_size).randbytes(5 * MEGABYTE // 2) + bytes(MEGABYTE)
    packed = lz4.frame.compress(
        data, block_size=block_size, block_checksum=has_more, store_size=has_more, block_linked=has_more
    )
    assert decompress(Codec.LZ4, packed) == data
    assert decompress(Codec.LZ4, packed, len(data)) == data
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.LZ4, packed, len(data) - 1)
    with pytest.raises(CorruptRecord):
        decompress(Codec.LZ4, packed[: 2 * MEGABYTE])


def test_a_snappy_block_that_promises_too_much_is_not_believed() -> None:
    promise = b"\xff\xff\xff\x3f" + b"\x00x"
    for packed in (promise, bytes(compress(Codec.SNAPPY, b"")) + struct.pack(">i", len(promise)) + promise):
        with pytest.raises(CorruptRecord, match="promises 134217727"):
            decompress(Codec.SNAPPY, packed)


@pytest.mark.parametrize("length", [-1, 7, 2**31 - 1])
def test_a_snappy_block_must_be_there(length: int) -> None:
    with pytest.raises(CorruptRecord, match=f"a block of {length} bytes with 6 left"):
        decompress(Codec.SNAPPY, bytes(compress(Codec.SNAPPY, b"")) + struct.pack(">i", length) + b"abcdef")


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"\x28\xb5\x2f\xfd\x00\x58\x07\x00\x00", "the reserved one came"),
        (b"abcdefgh", "a frame's magic number expected, 0x64636261 came"),
        (struct.pack("<II", 0x184D2A50, 50) + b"short", "cut off"),
    ],
)
def test_zstd_frames_are_looked_through(packed: bytes, why: str) -> None:
    with pytest.raises(CorruptRecord, match=why):
        decompress(Codec.ZSTD, packed)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_limit_reaches_the_reader(codec: Codec) -> None:
    batch = build_batch([Record(timestamp=1, value=bytes(MEGABYTE))], codec=codec)
    with pytest.raises(DecompressedTooLarge):
        read_records(batch, max_decompressed_bytes=MEGABYTE)
    assert len(read_records(batch, max_decompressed_bytes=MEGABYTE + 100)) == 1


def crowds() -> list[tuple[Codec, bytes]]:
    """As many frames or blocks as are allowed, and all of them empty but the first."""
    zstd_block, zstd_last = b"\x00\x00\x00", b"\x01\x00\x00"
    zstd_head = b"\x28\xb5\x2f\xfd\x00\x58"
    return [
        (Codec.GZIP, gzip.compress(b"") * 64),
        (Codec.LZ4, lz4.frame.compress(b"") * 64),
        (Codec.SNAPPY, bytes(compress(Codec.SNAPPY, b"")) + (struct.pack(">i", 1) + b"\x00") * 65_535),
        (Codec.ZSTD, zstd_head + zstd_block * 65_535 + zstd_last),
        (Codec.ZSTD, (zstd_head + zstd_last) * 65_536),
    ]


def test_empty_frames_and_blocks_are_counted() -> None:
    for codec, packed in crowds():
        assert decompress(codec, packed) == b""
        one_more = struct.pack(">i", 1) + b"\x00" if codec is Codec.SNAPPY else bytes(compress(codec, b""))
        with pytest.raises(CorruptRecord, match=r"more than|at most"):
            decompress(codec, packed + one_more)
