"""Whether bytes are whole zstd frames.

The streaming reader ends quietly where its input ends, in the middle of a frame too. So the frames are walked first:
only their block lengths are read, what is inside the blocks is left to the library.

    frame           = magic:4  descriptor:1  [window:1]  [dictionary id:0-4]  [content size:0-8]  block+  [checksum:4]
    block           = header:3 (bit 0 last, bits 1-2 type, bits 3-23 size)  content
    skippable frame = magic:4 (0x184D2A50 to 0x184D2A5F)  size:4  content
"""

from ottla.records.errors import CorruptRecord

_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC = 0x184D2A50
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
# A block stands for up to 128 KB, so this is far beyond what any producer writes.
_MOST_BLOCKS = 65_536
_BLOCK_RLE = 1
_BLOCK_RESERVED = 3


def _cut() -> CorruptRecord:
    return CorruptRecord("zstd batch: whole frames expected, a frame that is cut off came")


def _number(data: memoryview, position: int, size_bytes: int) -> int:
    if size_bytes > len(data) - position:
        raise _cut()
    return int.from_bytes(data[position : position + size_bytes], "little")


def _blocks_begin(data: memoryview, position: int, descriptor: int) -> tuple[int, int]:
    """Where the blocks of a frame begin, and how much memory it wants for what they refer to."""
    dictionary_id_bytes = _DICTIONARY_ID_BYTES[descriptor & 0x03]
    content_size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6]
    if descriptor & 0x20:
        # One segment: the whole content is the window.
        size_bytes = content_size_bytes or 1
        window_bytes = _number(data, position + dictionary_id_bytes, size_bytes) + (256 if size_bytes == 2 else 0)
        return position + dictionary_id_bytes + size_bytes, window_bytes
    window = _number(data, position, 1)
    window_bytes = (1 << (10 + (window >> 3))) * (8 + (window & 0x07)) // 8
    return position + 1 + dictionary_id_bytes + content_size_bytes, window_bytes


def _frame_end(data: memoryview, position: int, blocks_before: int) -> tuple[int, int, int]:
    """The position after a frame, the number of blocks up to there, and the size of its window."""
    descriptor = _number(data, position, 1)
    position, window_bytes = _blocks_begin(data, position + 1, descriptor)
    for blocks in range(blocks_before + 1, _MOST_BLOCKS + 1):
        block = _number(data, position, 3)
        kind = block >> 1 & 0x03
        if kind == _BLOCK_RESERVED:
            raise CorruptRecord("zstd batch: a block of a known type expected, the reserved one came")
        position += 3 + (1 if kind == _BLOCK_RLE else block >> 3)
        if block & 1:
            return position + (4 if descriptor & 0x04 else 0), blocks, window_bytes
    raise CorruptRecord(f"zstd batch: at most {_MOST_BLOCKS} blocks expected, more came")


def check_frames(data: memoryview) -> int:
    """The size of the largest window; CorruptRecord unless `data` is one or more whole frames and nothing else."""
    position = blocks = largest_window_bytes = 0
    while position < len(data):
        magic = _number(data, position, 4)
        if magic == _MAGIC:
            position, blocks, window_bytes = _frame_end(data, position + 4, blocks)
            largest_window_bytes = max(largest_window_bytes, window_bytes)
        elif magic & ~0x0F == _SKIPPABLE_MAGIC:
            blocks += 1
            position += 8 + _number(data, position + 4, 4)
        else:
            raise CorruptRecord(f"zstd batch: a frame's magic number expected, 0x{magic:08x} came")
        if position > len(data):
            raise _cut()
    return largest_window_bytes
