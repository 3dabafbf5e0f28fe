"""Records and batches for Hypothesis, with the sizes where varints grow and the values where sums end."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from ottla.records import Codec, Record, build_batch

# No deadlines: a test must not fail because the machine is busy.
USUAL = settings(max_examples=60, deadline=None)
THOROUGH = settings(max_examples=150, deadline=None)

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMESTAMPS = st.one_of(st.integers(0, 2**42), st.integers(-3, 3), st.integers(-(2**62), 2**62))
FIELDS = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.sampled_from([62, 63, 64, 65, 127, 128, 8_191, 8_192, 8_193]).map(lambda size: b"z" * size),
)
HEADERS = st.lists(st.tuples(st.text(max_size=8), FIELDS), max_size=4).map(tuple)
RECORDS = st.builds(Record, timestamp=TIMESTAMPS, key=FIELDS, value=FIELDS, headers=HEADERS)
CODECS = st.sampled_from(Codec)


@st.composite
def batches(draw: st.DrawFn, max_records: int = 6) -> bytes:
    """A valid batch with any header fields."""
    producer = draw(st.booleans())
    return build_batch(
        draw(st.lists(RECORDS, max_size=max_records)),
        base_offset=draw(st.integers(0, 2**62)),
        leader_epoch=draw(st.integers(-1, 2**31 - 1)),
        codec=draw(CODECS),
        log_append_time=draw(st.one_of(st.none(), TIMESTAMPS)),
        producer_id=draw(st.integers(0, 2**63 - 1)) if producer else -1,
        producer_epoch=draw(st.integers(0, 2**15 - 1)) if producer else -1,
        base_sequence=draw(st.integers(0, 2**31 - 1)) if producer else -1,
        transactional=producer and draw(st.booleans()),
        control=draw(st.booleans()),
    )


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """The same bytes with a few of them changed, left out or added."""
    result = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, max(len(result) - 1, 0)))
        change = draw(st.sampled_from(["set", "set", "set", "cut", "insert", "end"]))
        if change == "set" and result:
            result[position] = draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 2, 127, 128, 254, 255])))
        elif change == "cut":
            del result[position : position + draw(st.integers(1, 8))]
        elif change == "insert":
            result[position:position] = draw(st.binary(min_size=1, max_size=8))
        elif change == "end":
            del result[position:]
    return bytes(result)
