"""Compressing and decompressing the records of a batch, in the frames that Kafka's clients write.

| codec  | written                                                   | also read                                 |
|--------|-----------------------------------------------------------|-------------------------------------------|
| gzip   | one member                                                | several members                           |
| snappy | snappy-java's: a 16-byte header, then blocks of 32 KB     | one raw block, librdkafka's way           |
| lz4    | one frame: independent 64 or 256 KB blocks, no checksum   | every valid frame, several frames         |
| zstd   | one frame without content size                            | every valid frame, several frames         |

What comes out is bounded while it comes out: a few hostile bytes can stand for gigabytes. So is the number of frames
and blocks: each costs some work even when it is empty. Each library is imported when the first batch needs it.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.records._twin import twin
from ottla.records.codec import Codec
from ottla.records.errors import CorruptRecord, DecompressedTooLarge
from ottla.records.types import Buffer

if TYPE_CHECKING:
    import zstandard

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024

_STEP_BYTES = 1024 * 1024
_MOST_FRAMES = 64
_MOST_SNAPPY_BLOCKS = 65_536
_GZIP_WINDOW_BITS = 31

_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEADER = _SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK_BYTES = 32 * 1024
_SNAPPY_BLOCK_LENGTH = struct.Struct(">i")
# The densest element copies 64 bytes and takes 3: a block that promises more than this is lying.
_SNAPPY_LARGEST_RATIO = 22

_ZSTD_LARGEST_WINDOW_BYTES = 1 << 27
_LZ4_LARGEST_RATIO = 256
_LZ4_BLOCK_HEADER = struct.Struct("<I")
# The fast compressor, which gives up a little earlier on bytes that do not repeat: twice as fast on those, and as small
# as ever on JSON and text.
_LZ4_USUAL_LEVEL = -2
# In larger blocks JSON becomes 5 % smaller, is compressed 1.2 times and decompressed 1.4 times as fast; what does not
# repeat is compressed 1.8 times as fast.
_LZ4_SMALL_BYTES = 64 * 1024
_LZ4_PIECE_BYTES = 256 * 1024

# Making one takes as long as decompressing a small batch; each is used by one thread at a time.
_idle_zstd: "list[_ZstdPlace]" = []
_MOST_IDLE_ZSTD = 8
# By level. Higher ones take hundreds of megabytes.
_idle_compressors: "dict[int, list[zstandard.ZstdCompressor]]" = {}
_ZSTD_USUAL_LEVEL = 3
_ZSTD_LARGEST_IDLE_LEVEL = 9
_ZSTD_FIRST_BYTES = 64 * 1024
_ZSTD_KEPT_BYTES = 4 * 1024 * 1024


class _Output:
    """Collects what comes out and refuses the first byte beyond the limit."""

    def __init__(self, codec: Codec, limit_bytes: int) -> None:
        self._codec = codec
        self._limit_bytes = limit_bytes
        self._chunks: list[bytes] = []
        self._size_bytes = 0

    @property
    def next_step_bytes(self) -> int:
        """How much to ask for: a step, or the one byte too many that proves the limit is broken."""
        return min(_STEP_BYTES, self._limit_bytes - self._size_bytes + 1)

    @property
    def room_bytes(self) -> int:
        return self._limit_bytes - self._size_bytes

    def promise(self, more_bytes: int) -> None:
        if more_bytes > self._limit_bytes - self._size_bytes:
            raise DecompressedTooLarge(self._codec.config_name, self._limit_bytes)

    def add(self, chunk: bytes) -> None:
        self.promise(len(chunk))
        self._size_bytes += len(chunk)
        self._chunks.append(chunk)

    def joined(self) -> bytes:
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)


def _broken(codec: Codec, why: object) -> CorruptRecord:
    return CorruptRecord(f"{codec.config_name} batch: a whole, valid frame expected, came: {why}")


def _next_frame(codec: Codec, frames: int) -> int:
    if frames == _MOST_FRAMES:
        raise _broken(codec, f"more than {_MOST_FRAMES} frames")
    return frames + 1


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    return zlib.compress(data, zlib.Z_DEFAULT_COMPRESSION if level is None else level, _GZIP_WINDOW_BITS)


def _decompress_gzip(data: memoryview, output: _Output) -> None:
    remaining: Buffer = data
    frames = 0
    while remaining:
        frames = _next_frame(Codec.GZIP, frames)
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        try:
            while not member.eof:
                chunk = member.decompress(remaining, output.next_step_bytes)
                remaining = member.unconsumed_tail
                if not chunk and not remaining and not member.eof:
                    raise _broken(Codec.GZIP, "a frame that is cut off")
                output.add(chunk)
        except zlib.error as error:
            raise _broken(Codec.GZIP, error) from None
        remaining = member.unused_data


def _compress_snappy(data: Buffer, level: int | None) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    parts = [_SNAPPY_HEADER]
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_BYTES]))
        parts += (_SNAPPY_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, output: _Output) -> None:
    from cramjam import DecompressionError, snappy

    size_bytes = 0
    for index, byte in enumerate(block[:5]):
        size_bytes |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    else:
        raise _broken(Codec.SNAPPY, "a block without its size")
    if size_bytes > len(block) * _SNAPPY_LARGEST_RATIO:
        raise _broken(Codec.SNAPPY, f"a block of {len(block)} bytes that promises {size_bytes}")
    output.promise(size_bytes)
    try:
        output.add(bytes(snappy.decompress_raw(block)))
    except DecompressionError as error:
        raise _broken(Codec.SNAPPY, error) from None


def _decompress_snappy(data: memoryview, output: _Output) -> None:
    if data[: len(_SNAPPY_MAGIC)] != _SNAPPY_MAGIC:
        _decompress_snappy_block(data, output)
        return
    position = blocks = 0
    while position < len(data):
        blocks += 1
        if blocks > _MOST_SNAPPY_BLOCKS:
            raise _broken(Codec.SNAPPY, f"more than {_MOST_SNAPPY_BLOCKS} blocks")
        if data[position : position + len(_SNAPPY_MAGIC)] == _SNAPPY_MAGIC:
            position += len(_SNAPPY_HEADER)
            if position > len(data):
                raise _broken(Codec.SNAPPY, "a header that is cut off")
            continue
        if len(data) - position < _SNAPPY_BLOCK_LENGTH.size:
            raise _broken(Codec.SNAPPY, "a block length that is cut off")
        (length,) = _SNAPPY_BLOCK_LENGTH.unpack_from(data, position)
        position += _SNAPPY_BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise _broken(Codec.SNAPPY, f"a block of {length} bytes with {len(data) - position} left")
        _decompress_snappy_block(data[position : position + length], output)
        position += length


def _compress_lz4(data: Buffer, level: int | None) -> Buffer:
    from lz4 import frame

    options = {
        "compression_level": _LZ4_USUAL_LEVEL if level is None else level,
        "block_linked": False,
        "content_checksum": False,
        "block_checksum": False,
    }
    if len(data) <= _LZ4_SMALL_BYTES:
        small: bytes = frame.compress(data, block_size=frame.BLOCKSIZE_MAX64KB, store_size=False, **options)
        return small
    # Piece by piece: of a whole batch, the library makes two copies in fresh memory (see `_native_memory.pxi`).
    compressor = frame.LZ4FrameCompressor(block_size=frame.BLOCKSIZE_MAX256KB, auto_flush=True, **options)
    view = memoryview(data)
    starts = range(0, len(view), _LZ4_PIECE_BYTES)
    pieces = (compressor.compress(view[start : start + _LZ4_PIECE_BYTES]) for start in starts)
    return twin.joined([compressor.begin(), *pieces, compressor.flush()])


def _lz4_bound(data: memoryview, block_bytes: int) -> int:
    """The most that a frame can become: as many blocks as have a header in it, none larger than the frame allows.

    It stops to count at what no room is enough for.
    """
    flags = data[4]
    place = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    behind_block = 4 if flags & 0x10 else 0
    bound = 0
    while place + 4 <= len(data) and bound <= MAX_DECOMPRESSED_BYTES:
        (header,) = _LZ4_BLOCK_HEADER.unpack_from(data, place)
        if header == 0:
            break
        # The highest bit says that the block is not compressed.
        place += 4 + (header & 0x7FFFFFFF) + behind_block
        bound += block_bytes
    return bound


def _whole_lz4_frame(data: memoryview, room_bytes: int) -> bytes | None:
    """The usual case in one call: one frame that cannot grow beyond the room. None for all others."""
    from lz4 import frame

    try:
        information = frame.get_frame_info(data)
        if information["content_size"] > room_bytes:
            return None
        if len(data) * _LZ4_LARGEST_RATIO > room_bytes and _lz4_bound(data, information["block_size"]) > room_bytes:
            return None
        whole, read_bytes = frame.decompress(data, return_bytes_read=True)
    except (RuntimeError, EOFError, ValueError):
        return None
    return whole if read_bytes == len(data) else None


def _decompress_lz4(data: memoryview, output: _Output) -> None:
    from lz4 import frame

    whole = _whole_lz4_frame(data, output.room_bytes)
    if whole is not None:
        output.add(whole)
        return
    remaining: Buffer | None = data
    frames = 0
    while remaining:
        frames = _next_frame(Codec.LZ4, frames)
        decompressor = frame.LZ4FrameDecompressor()
        try:
            while not decompressor.eof:
                chunk = decompressor.decompress(remaining, max_length=output.next_step_bytes)
                remaining = b""
                if not chunk and decompressor.needs_input and not decompressor.eof:
                    raise _broken(Codec.LZ4, "a frame that is cut off")
                output.add(chunk)
        except (RuntimeError, EOFError, ValueError) as error:
            raise _broken(Codec.LZ4, error) from None
        remaining = decompressor.unused_data


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    level = _ZSTD_USUAL_LEVEL if level is None else level
    idle = _idle_compressors.setdefault(level, [])
    compressor = idle.pop() if idle else zstandard.ZstdCompressor(level=level, write_content_size=False)
    compressed: bytes = compressor.compress(data)
    if level <= _ZSTD_LARGEST_IDLE_LEVEL and len(idle) < _MOST_IDLE_ZSTD:
        idle.append(compressor)
    return compressed


class _ZstdPlace:
    """What it takes to decompress, and memory for what comes out; for one batch at a time.

    Fresh memory for every batch would cost more than the decompression: see `_native_memory.pxi`.
    """

    def __init__(self) -> None:
        import zstandard

        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_LARGEST_WINDOW_BYTES)
        self._memory = bytearray(_ZSTD_FIRST_BYTES)

    @property
    def size_bytes(self) -> int:
        return len(self._memory)

    def decompress(self, data: memoryview, limit_bytes: int) -> memoryview:
        """What comes out, there until the next call; one byte more than the limit proves that it is broken."""
        reader = self._decompressor.stream_reader(data, read_across_frames=True)
        size_bytes = 0
        while read_bytes := reader.readinto(memoryview(self._memory)[size_bytes:]):
            size_bytes += read_bytes
            if size_bytes > limit_bytes:
                raise DecompressedTooLarge(Codec.ZSTD.config_name, limit_bytes)
            if size_bytes == len(self._memory):
                larger = bytearray(min(2 * size_bytes, limit_bytes + 1))
                larger[:size_bytes] = self._memory
                self._memory = larger
        return memoryview(self._memory)[:size_bytes]


@contextmanager
def _zstd_decompressed(data: memoryview, limit_bytes: int) -> Iterator[memoryview]:
    import zstandard

    from ottla.records.zstd_frames import check_frames

    largest_window_bytes = check_frames(data)
    place = _idle_zstd.pop() if _idle_zstd else _ZstdPlace()
    try:
        whole = place.decompress(data, limit_bytes)
    except zstandard.ZstdError as error:
        raise _broken(Codec.ZSTD, error) from None
    yield whole
    is_small = place.size_bytes <= _ZSTD_KEPT_BYTES and largest_window_bytes <= _ZSTD_KEPT_BYTES
    if is_small and len(_idle_zstd) < _MOST_IDLE_ZSTD:
        _idle_zstd.append(place)


def _decompress_zstd(data: memoryview, output: _Output) -> None:
    with _zstd_decompressed(data, output.room_bytes) as whole:
        output.add(bytes(whole))


_COMPRESS: dict[Codec, Callable[[Buffer, int | None], Buffer]] = {
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}
_DECOMPRESS: dict[Codec, Callable[[memoryview, _Output], None]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}


def compress(codec: Codec, data: Buffer, level: int | None = None) -> Buffer:
    """`data` in the codec's frame; the data itself for no codec. No level means the codec's own default."""
    return data if codec is Codec.NONE else _COMPRESS[codec](data, level)


def decompress(codec: Codec, data: Buffer, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> Buffer:
    """What was compressed; CorruptRecord when it is not the codec's, cut off, or larger than allowed."""
    if codec is Codec.NONE:
        return data
    output = _Output(codec, max_decompressed_bytes)
    _DECOMPRESS[codec](memoryview(data).cast("B"), output)
    return output.joined()


@contextmanager
def decompressed(codec: Codec, data: Buffer, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Buffer]:
    """The same, but there only inside of the block: it may be memory that the next batch is decompressed into."""
    if codec is Codec.ZSTD:
        with _zstd_decompressed(memoryview(data).cast("B"), max_decompressed_bytes) as whole:
            yield whole
    else:
        yield decompress(codec, data, max_decompressed_bytes)
