"""What the package makes of fixed inputs, as one digest; run as a program it prints it.

The tests run it once in their own process and once with the pure twin chosen, and expect the same digest.
"""

from __future__ import annotations

import hashlib

from ottla import records
from ottla.records import Codec, Record


def digest() -> str:
    samples = [
        Record(timestamp=1_000 + index, key=b"k%d" % index if index % 3 else None, value=b"value" * index)
        for index in range(40)
    ]
    samples.append(Record(timestamp=7, value=None, headers=(("a", b"1"), ("b", None))))
    seen = hashlib.sha256()
    for codec in Codec:
        batch = records.build_batch(samples, base_offset=5, codec=codec, producer_id=1, producer_epoch=1)
        table = records.to_arrow([batch, batch], first_offset=7)
        parts = [
            batch,
            repr(records.inspect_batches(batch)).encode(),
            repr(records.read_records(batch)).encode(),
            repr(table.to_pylist()).encode(),
            *records.from_arrow(table, max_batch_bytes=700, codec=codec),
            repr(records.find_refused(batch, needs_key=True, earliest_ms=8, latest_ms=1_030, limit=20)).encode(),
        ]
        for part in parts:
            seen.update(part)
    return seen.hexdigest()


if __name__ == "__main__":
    print(records.IS_NATIVE, digest())  # noqa: T201 - the answer to the test that runs this file
