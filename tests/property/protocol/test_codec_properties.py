"""What holds for any message: the round trip, parity with the plain twin, and that bad bytes have one error only."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.protocol.plain_codec import plain_decode, plain_encode
from tests.property.protocol.samples import ALL_MESSAGES, random_message, versions_of

from ottla.protocol.errors import MalformedMessage
from ottla.protocol.message import Message

CASES = [(cls, version) for cls in ALL_MESSAGES for version in versions_of(cls)]
MUTATIONS = 12

RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A large message takes many draws, and the first use of a version compiles it."""

dice = st.randoms(use_true_random=False)


@RELAXED
@given(st.sampled_from(CASES), dice)
def test_round_trip(case: tuple[type[Message], int], random: Random) -> None:
    cls, version = case
    message = random_message(cls, version, random)
    data = message.encode(version)
    assert cls.decode(data, version) == message
    assert cls.decode(memoryview(bytearray(data)), version) == message
    assert cls.decode(b"head" + data, version, 4) == message


@RELAXED
@given(st.sampled_from(CASES), st.binary(max_size=200))
def test_arbitrary_bytes(case: tuple[type[Message], int], data: bytes) -> None:
    cls, version = case
    try:
        message = cls.decode(data, version)
    except MalformedMessage:
        with pytest.raises(MalformedMessage):
            plain_decode(cls, data, version)
    else:
        assert message == plain_decode(cls, data, version)


@pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)
def test_parity_with_the_plain_twin(cls: type[Message]) -> None:
    for version in versions_of(cls):
        random = Random(f"parity {cls.__name__} {version}")
        for _ in range(2):
            message = random_message(cls, version, random)
            data = plain_encode(message, version)
            assert message.encode(version) == data
            assert cls.decode(data, version) == plain_decode(cls, data, version) == message


@pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)
def test_damaged_bytes_are_refused_as_the_plain_twin_refuses_them(cls: type[Message]) -> None:
    """Cut off, lengthened and overwritten at random: the same message comes out of both, or the one error."""
    for version in versions_of(cls):
        random = Random(f"damage {cls.__name__} {version}")
        data = random_message(cls, version, random).encode(version)
        for _ in range(MUTATIONS):
            damaged = _damage(data, random)
            try:
                expected = plain_decode(cls, damaged, version)
            except MalformedMessage:
                with pytest.raises(MalformedMessage):
                    cls.decode(damaged, version)
            else:
                # Compared as bytes, in which a float that is not a number equals itself.
                assert cls.decode(damaged, version).encode(version) == plain_encode(expected, version)


@pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)
def test_every_truncation_is_refused(cls: type[Message]) -> None:
    version = cls.MAX_VERSION
    data = random_message(cls, version, Random(f"cut {cls.__name__}")).encode(version)[:400]
    for size in range(len(data)):
        with pytest.raises(MalformedMessage):
            cls.decode(data[:size], version)


def _damage(data: bytes, random: Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        kind = random.randrange(4)
        place = random.randrange(len(damaged) + 1)
        if kind == 0:
            del damaged[place:]
        elif kind == 1:
            damaged[place:place] = random.randbytes(random.choice((1, 2, 4)))
        elif kind == 2 and place < len(damaged):
            damaged[place] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        else:
            damaged[place : place + 4] = random.choice(
                (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x80\x80\x80\x10")
            )
    return bytes(damaged)
