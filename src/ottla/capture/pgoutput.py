"""What PostgreSQL's own output plugin `pgoutput` says (protocol version 1), as changes. Bytes in, changes out.

A transaction comes whole, after its commit, and transactions come in commit order:

    Begin, then for each row Insert | Update | Delete, then Commit

A Relation message describes a table before its first row, and again when the table has changed. Rows carry the text
form of their values, and nothing where an update left a large value as it was: that one is taken from the row before,
which tables with REPLICA IDENTITY FULL send whole.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ottla.capture.changes import HOW_TO_BEGIN_ANEW, CaptureError, Change, JsonValue, Operation, Row, Settled

# PostgreSQL counts microseconds from 2000-01-01.
_EPOCH_OFFSET_MS = 946_684_800_000

_BEGIN = struct.Struct(">QqI")
_COMMIT = struct.Struct(">BQQq")

_BOOL, _INTEGERS, _FLOATS = 16, (20, 21, 23, 26), (700, 701)


def json_value(type_oid: int, text: str) -> JsonValue:
    """Integers, finite floats and booleans as JSON has them; all else, exact numerics included, as text."""
    if type_oid in _INTEGERS:
        return int(text)
    if type_oid == _BOOL:
        return text == "t"
    if type_oid in _FLOATS and text not in ("NaN", "Infinity", "-Infinity"):
        return float(text)
    return text


def time_ms(microseconds: int) -> int:
    return microseconds // 1000 + _EPOCH_OFFSET_MS


@dataclass(frozen=True, slots=True)
class _Relation:
    """`table` is None where it is not captured."""

    table: str | None
    name: str
    has_full_identity: bool
    columns: tuple[tuple[str, int], ...]


class _Reader:
    """A message, from front to back."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._at = 1

    def unpack(self, layout: str) -> int:
        (value,) = struct.unpack_from(f">{layout}", self._message, self._at)
        self._at += struct.calcsize(f">{layout}")
        return int(value)

    def byte(self) -> bytes:
        self._at += 1
        return self._message[self._at - 1 : self._at]

    def name(self) -> str:
        end = self._message.index(0, self._at)
        text = self._message[self._at : end].decode()
        self._at = end + 1
        return text

    def text(self) -> str:
        size = self.unpack("I")
        self._at += size
        return self._message[self._at - size : self._at].decode()


class Decoder:
    """The messages of one stream, in their order."""

    def __init__(self, tables: Mapping[tuple[str, str], str]) -> None:
        """`tables` names the captured ones: (schema, table) to the name that their changes carry."""
        self._tables = tables
        self._relations: dict[int, _Relation] = {}
        self._commit_lsn = 0
        self._commit_time_ms = 0
        self._is_open = False

    @property
    def is_between_transactions(self) -> bool:
        return not self._is_open

    def decode(self, message: bytes) -> Iterator[Change | Settled]:
        match message[:1]:
            case b"I":
                yield self._insert(_Reader(message))
            case b"U":
                yield self._update(_Reader(message))
            case b"D":
                yield self._delete(_Reader(message))
            case b"B":
                self._commit_lsn, microseconds, _transaction = _BEGIN.unpack_from(message, 1)
                self._commit_time_ms = time_ms(microseconds)
                self._is_open = True
            case b"C":
                _flags, _lsn, end_lsn, _microseconds = _COMMIT.unpack_from(message, 1)
                self._is_open = False
                yield Settled(end_lsn)
            case b"R":
                self._relation(_Reader(message))
            case b"Y" | b"O":  # the name of a type, the origin of a transaction: of no use here
                pass
            case kind:
                raise CaptureError(f"pgoutput sent a message of the kind {kind!r}, which was not asked for")

    def _change(self, table: str, operation: Operation, before: Row | None, after: Row | None) -> Change:
        return Change(table, operation, before, after, self._commit_lsn, self._commit_time_ms)

    def _relation(self, reader: _Reader) -> None:
        number = reader.unpack("I")
        schema, name = reader.name(), reader.name()
        identity = reader.byte()
        columns = []
        for _ in range(reader.unpack("H")):
            reader.unpack("B")
            column = reader.name()
            columns.append((column, reader.unpack("I")))
            reader.unpack("i")
        # Partitions are described, too, although their rows come as those of the whole table.
        table = self._tables.get((schema, name))
        self._relations[number] = _Relation(table, f"{schema}.{name}", identity == b"f", tuple(columns))

    def _row(self, reader: _Reader, relation: _Relation, before: Row | None = None) -> Row:
        row: Row = {}
        count = reader.unpack("H")
        for column, type_oid in relation.columns[:count]:
            match reader.byte():
                case b"n":
                    row[column] = None
                case b"u":
                    row[column] = None if before is None else before[column]
                case b"t":
                    row[column] = json_value(type_oid, reader.text())
                case kind:
                    raise CaptureError(f"pgoutput sent a value of the kind {kind!r}, which was not asked for")
        return row

    def _insert(self, reader: _Reader) -> Change:
        relation, table = self._captured(reader)
        reader.byte()
        return self._change(table, Operation.INSERT, None, self._row(reader, relation))

    def _update(self, reader: _Reader) -> Change:
        relation, table = self._full(reader)
        if reader.byte() != b"O":
            raise CaptureError(missing_identity(table))
        before = self._row(reader, relation)
        reader.byte()
        return self._change(table, Operation.UPDATE, before, self._row(reader, relation, before))

    def _delete(self, reader: _Reader) -> Change:
        relation, table = self._full(reader)
        reader.byte()
        return self._change(table, Operation.DELETE, self._row(reader, relation), None)

    def _captured(self, reader: _Reader) -> tuple[_Relation, str]:
        relation = self._relations[reader.unpack("I")]
        if relation.table is None:
            raise CaptureError(
                f"the publication sends rows of {relation.name}, which was not asked for: somebody has changed it."
                f" {HOW_TO_BEGIN_ANEW}"
            )
        return relation, relation.table

    def _full(self, reader: _Reader) -> tuple[_Relation, str]:
        relation, table = self._captured(reader)
        if not relation.has_full_identity:
            raise CaptureError(missing_identity(table))
        return relation, table


def missing_identity(table: str) -> str:
    return (
        f"table {table} does not tell what rows were before a change: run"
        f" `ALTER TABLE {table} REPLICA IDENTITY FULL`, and the same for its partitions if it has any, then begin again"
    )
