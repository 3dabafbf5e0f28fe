"""XXH3 with 64 bits and no seed: the hash by which Kafka sees that what a group reads has changed.

Short inputs are mixed in one go; long ones run in stripes of 64 bytes through eight accumulators, which are scrambled
after every block of 16 stripes. All numbers are unsigned and little-endian.
"""

import struct

_MASK = 0xFFFFFFFFFFFFFFFF
_PRIME32_1, _PRIME32_2, _PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME64_1, _PRIME64_2, _PRIME64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_PRIME64_4, _PRIME64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MIX_1, _MIX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE_BYTES = 64
_STRIPES_PER_BLOCK = (len(_SECRET) - _STRIPE_BYTES) // 8
_BLOCK_BYTES = _STRIPE_BYTES * _STRIPES_PER_BLOCK
_EIGHT = struct.Struct("<8Q")
_STRIPE_SECRETS = [_EIGHT.unpack_from(_SECRET, 8 * number) for number in range(_STRIPES_PER_BLOCK)]
_SCRAMBLE_SECRET = _EIGHT.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)
_LAST_STRIPE_SECRET = _EIGHT.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES - 7)
_MERGE_SECRET = _EIGHT.unpack_from(_SECRET, 11)


def xxh3_64(data: bytes) -> int:
    """The hash as a signed number, as Java has it."""
    size = len(data)
    if size > 240:
        value = _hash_long(data, size)
    elif size > 128:
        value = _hash_medium(data, size)
    elif size > 16:
        value = _hash_short(data, size)
    else:
        value = _hash_tiny(data, size)
    return value - (1 << 64) if value >> 63 else value


def _word(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")


def _fold(left: int, right: int) -> int:
    product = (left & _MASK) * (right & _MASK)
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value &= _MASK
    value = ((value ^ (value >> 37)) * _MIX_1) & _MASK
    return value ^ (value >> 32)


def _old_avalanche(value: int) -> int:
    """The last step of the hash before this one (XXH64), which the smallest inputs still take."""
    value = ((value ^ (value >> 33)) * _PRIME64_2) & _MASK
    value = ((value ^ (value >> 29)) * _PRIME64_3) & _MASK
    return value ^ (value >> 32)


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _hash_tiny(data: bytes, size: int) -> int:
    if size > 8:
        low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
        high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _fold(low, high))
    if size >= 4:
        first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
        value = (last + (first << 32)) ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
        value ^= _rotated(value, 49) ^ _rotated(value, 24)
        value = (value * _MIX_2) & _MASK
        value = ((value ^ ((value >> 35) + size)) * _MIX_2) & _MASK
        return value ^ (value >> 28)
    if size:
        combined = (data[0] << 16) | (data[size >> 1] << 24) | data[-1] | (size << 8)
        secret = int.from_bytes(_SECRET[:4], "little") ^ int.from_bytes(_SECRET[4:8], "little")
        return _old_avalanche(combined ^ secret)
    return _old_avalanche(_word(_SECRET, 56) ^ _word(_SECRET, 64))


def _mixed(data: bytes, position: int, secret: int) -> int:
    return _fold(_word(data, position) ^ _word(_SECRET, secret), _word(data, position + 8) ^ _word(_SECRET, secret + 8))


def _hash_short(data: bytes, size: int) -> int:
    total = size * _PRIME64_1
    for number in range((size - 1) // 32 + 1):
        total += _mixed(data, 16 * number, 32 * number)
        total += _mixed(data, size - 16 * (number + 1), 32 * number + 16)
    return _avalanche(total)


def _hash_medium(data: bytes, size: int) -> int:
    total = size * _PRIME64_1
    for number in range(8):
        total += _mixed(data, 16 * number, 16 * number)
    total = _avalanche(total)
    for number in range(8, size // 16):
        total += _mixed(data, 16 * number, 16 * (number - 8) + 3)
    return _avalanche(total + _mixed(data, size - 16, 136 - 17))


def _hash_long(data: bytes, size: int) -> int:
    sums = [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1]
    for stripe in range((size - 1) // _STRIPE_BYTES):
        number = stripe % _STRIPES_PER_BLOCK
        _accumulate(sums, data, stripe * _STRIPE_BYTES, _STRIPE_SECRETS[number])
        if number == _STRIPES_PER_BLOCK - 1:
            for lane, secret in enumerate(_SCRAMBLE_SECRET):
                value = sums[lane]
                sums[lane] = ((value ^ (value >> 47) ^ secret) * _PRIME32_1) & _MASK
    _accumulate(sums, data, size - _STRIPE_BYTES, _LAST_STRIPE_SECRET)
    total = size * _PRIME64_1
    for lane in range(0, 8, 2):
        total += _fold(sums[lane] ^ _MERGE_SECRET[lane], sums[lane + 1] ^ _MERGE_SECRET[lane + 1])
    return _avalanche(total)


def _accumulate(sums: list[int], data: bytes, position: int, secrets: tuple[int, ...]) -> None:
    for lane, value in enumerate(_EIGHT.unpack_from(data, position)):
        key = value ^ secrets[lane]
        sums[lane ^ 1] = (sums[lane ^ 1] + value) & _MASK
        sums[lane] = (sums[lane] + (key & 0xFFFFFFFF) * (key >> 32)) & _MASK
