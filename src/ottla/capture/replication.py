"""PostgreSQL's streaming replication protocol, on libpq's own calls.

psycopg has no replication of its own, but its `pq` layer is libpq whole: a connection with `replication=database` takes
the replication commands, and after START_REPLICATION both sides stream (COPY_BOTH). So changes arrive the moment they
are committed; to poll `pg_logical_slot_peek_binary_changes` would decode the same log again at every look.

Messages inside of the stream:

    from the server   w: u64 start of the data, u64 end of the log, i64 time, then a message of the output plugin
                      k: u64 end of the log, i64 time, u8 whether an answer is wanted
    to the server     r: u64 written, u64 flushed, u64 applied, i64 time, u8 whether an answer is wanted
"""

from __future__ import annotations

import selectors
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGresult

from ottla.capture.changes import HOW_TO_BEGIN_ANEW, SourceUnavailable
from ottla.capture.refusals import NEEDS_LOGICAL, refusal

_STATUS = struct.Struct(">cQQQqB")
_DATA_HEADER_BYTES = 25
_NOT_READY = "55000"
_WAIT_SECONDS = 1.0
# The server gives a silent client up after wal_sender_timeout, a minute unless set otherwise.
_STATUS_SECONDS = 10.0

# Values have one text form on every server, so that a snapshot and a stream agree.
SESSION = "-c datestyle=ISO -c intervalstyle=iso_8601 -c timezone=UTC -c extra_float_digits=1 -c bytea_output=hex"
ENCODING = "UTF8"


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Everything that concerns us up to `position` has been sent."""

    position: int


def lsn_text(position: int) -> str:
    """A position as PostgreSQL writes it: two halves in hexadecimal digits."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def lsn(text: str) -> int:
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


class ReplicationConnection:
    """One connection: commands first, then a stream that goes on until the connection is closed."""

    def __init__(self, conninfo: str) -> None:
        settings = make_conninfo(
            conninfo,
            replication="database",
            options=SESSION,
            client_encoding=ENCODING,
            application_name="ottla-capture",
        )
        self._connection = pq.PGconn.connect(settings.encode())
        if self._connection.status != pq.ConnStatus.OK:
            raise SourceUnavailable(f"PostgreSQL cannot be reached: {self._failure()}")
        self._confirmed = 0
        self._told_at = time.monotonic()

    def close(self) -> None:
        self._connection.finish()

    def create_slot(self, name: str) -> tuple[int, str]:
        """Its first position, and the name of the snapshot of that moment, valid until the next command here."""
        result = self._execute(f'CREATE_REPLICATION_SLOT "{name}" LOGICAL pgoutput EXPORT_SNAPSHOT', NEEDS_LOGICAL)
        position, snapshot = result.get_value(0, 1), result.get_value(0, 2)
        assert position is not None
        assert snapshot is not None
        return lsn(position.decode()), snapshot.decode()

    def start(self, slot: str, publication: str, position: int) -> None:
        options = f"proto_version '1', publication_names '\"{publication}\"'"
        self._execute(f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(position)} ({options})', HOW_TO_BEGIN_ANEW)
        self._confirmed = position

    def messages(self) -> Iterator[bytes | Keepalive | None]:
        """What the output plugin says; None before it waits for more."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection.socket, selectors.EVENT_READ)
            while True:
                data = self._next()
                if data is None:
                    yield None
                    self._tell_now_and_then()
                    selector.select(_WAIT_SECONDS)
                    self._consume()
                elif data[:1] == b"w":
                    yield data[_DATA_HEADER_BYTES:]
                elif data[:1] == b"k":
                    position, _time, wants_answer = struct.unpack_from(">QqB", data, 1)
                    yield Keepalive(position)
                    if wants_answer:
                        self._tell()

    def confirm(self, position: int) -> None:
        """The server may forget what is before `position`."""
        self._confirmed = position
        self._tell()

    def _next(self) -> bytes | None:
        size, data = self._connection.get_copy_data(1)
        if size == 0:
            self._consume()
            size, data = self._connection.get_copy_data(1)
        if size > 0:
            return bytes(data)
        if size == 0:
            return None
        result = self._connection.get_result()
        if result is None:
            raise SourceUnavailable(f"PostgreSQL ended the stream: {self._failure()}")
        raise refusal("PostgreSQL ended the stream", _state(result), _reason(result))

    def _consume(self) -> None:
        try:
            self._connection.consume_input()
        except psycopg.OperationalError as error:
            raise SourceUnavailable(f"PostgreSQL is gone: {error}") from error

    def _tell_now_and_then(self) -> None:
        if time.monotonic() - self._told_at > _STATUS_SECONDS:
            self._tell()

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        position = self._confirmed
        try:
            self._connection.put_copy_data(_STATUS.pack(b"r", position, position, position, 0, 0))
            self._connection.flush()
        except psycopg.OperationalError as error:
            raise SourceUnavailable(f"PostgreSQL is gone: {error}") from error

    def _execute(self, command: str, remedy: str) -> PGresult:
        """`remedy` helps where what the command needs is not there."""
        try:
            result = self._connection.exec_(command.encode())
        except psycopg.OperationalError as error:
            raise SourceUnavailable(f"PostgreSQL is gone: {error}") from error
        if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
            state = _state(result)
            known = remedy if state == _NOT_READY else None
            raise refusal(f"PostgreSQL refused `{command}`", state, _reason(result), known)
        return result

    def _failure(self) -> str:
        return self._connection.error_message.decode(errors="replace").strip()


def _state(result: PGresult) -> str | None:
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    return None if state is None else state.decode()


def _reason(result: PGresult) -> str:
    return result.error_message.decode(errors="replace").strip()
