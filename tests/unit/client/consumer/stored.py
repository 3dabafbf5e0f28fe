"""What a broker would answer: batches as they are stored, and chunks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ottla.client.consumer import _native
from ottla.client.consumer.batches import contents_of
from ottla.records import Codec, ControlType, EndTransactionMarker, Record, build_batch, build_end_transaction


class Place(NamedTuple):
    topic: str = "orders"
    partition: int = 3
    next_offset: int = 0


def batch(
    values: Iterable[bytes | None],
    base_offset: int = 0,
    *,
    codec: Codec = Codec.NONE,
    epoch: int = 7,
    producer_id: int = -1,
    transactional: bool = False,
    log_append_time: int | None = None,
    last_offset_delta: int | None = None,
    offsets: Sequence[int] | None = None,
) -> bytes:
    records = [
        Record(
            offset=base_offset + index if offsets is None else offsets[index],
            timestamp=1000 + index,
            key=b"k%d" % index if index % 2 else None,
            value=value,
            headers=(("n", b"%d" % index), ("none", None)) if index % 3 == 0 else (),
        )
        for index, value in enumerate(values)
    ]
    return build_batch(
        records,
        base_offset=base_offset,
        leader_epoch=epoch,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        transactional=transactional,
        log_append_time=log_append_time,
        keep_offsets=offsets is not None,
        last_offset_delta=last_offset_delta,
    )


def marker(producer_id: int, base_offset: int, kind: ControlType) -> bytes:
    return build_end_transaction(
        EndTransactionMarker(kind, 0),
        producer_id=producer_id,
        producer_epoch=0,
        timestamp=1,
        base_offset=base_offset,
        leader_epoch=7,
    )


def chunk(
    data: bytes | memoryview,
    wanted_offset: int = 0,
    *,
    twin: Any = _native,
    aborted: Sequence[tuple[int, int]] | None = None,
    check_crcs: bool = True,
    decode_key: Callable[[str, bytes], object] | None = None,
    decode_value: Callable[[str, bytes], object] | None = None,
    topic: str = "orders",
    partition: int = 3,
) -> Any:
    view = memoryview(data)
    contents = contents_of(Place(topic, partition, wanted_offset), view, aborted, wanted_offset=wanted_offset)
    return twin.Chunk(
        topic,
        partition,
        wanted_offset,
        contents.end_offset,
        view,
        contents.entries,
        contents.epoch,
        check_crcs,
        contents.damage,
        decode_key,
        decode_value,
    )


def taken(given: Any, limit: int = 1_000_000) -> list[Any]:
    records: list[Any] = []
    given.take(records, limit)
    return records
