"""The choice between the compiled twin and the pure one, made once, here, by the rules of `ottla.records._twin`."""

import os
from typing import TYPE_CHECKING

__all__ = ["IS_NATIVE", "AsyncRecordIterator", "Chunk", "Record", "RecordIterator"]

if TYPE_CHECKING:
    from ottla.client.consumer import _native as twin

    IS_NATIVE = True
elif os.environ.get("OTTLA_PURE") == "1":
    from ottla.client.consumer import _pure as twin

    IS_NATIVE = False
else:
    try:
        from ottla.client.consumer import _native as twin

        IS_NATIVE = True
    except ImportError:
        from ottla.client.consumer import _pure as twin

        IS_NATIVE = False

AsyncRecordIterator = twin.AsyncRecordIterator
Chunk = twin.Chunk
Record = twin.Record
RecordIterator = twin.RecordIterator
