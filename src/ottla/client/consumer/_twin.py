"""The choice between the compiled twin and the pure one, made once, here, by the rules of `ottla.twins`."""

from typing import TYPE_CHECKING

from ottla.twins import native_of

__all__ = ["IS_NATIVE", "AsyncRecordIterator", "Chunk", "Record", "RecordIterator"]

if TYPE_CHECKING:
    from ottla.client.consumer import _native as twin

    IS_NATIVE = True
else:
    twin = native_of("ottla.client.consumer")
    IS_NATIVE = twin is not None
    if not IS_NATIVE:
        from ottla.client.consumer import _pure as twin

AsyncRecordIterator = twin.AsyncRecordIterator
Chunk = twin.Chunk
Record = twin.Record
RecordIterator = twin.RecordIterator
