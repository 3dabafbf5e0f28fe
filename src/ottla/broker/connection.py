"""One client connection: frames in, answers out, in order.

    readable -> receive -> cut frames -> dispatch -> answer now, or park it
                                                        |
    writable <- outbox (bytes, then sendfile) <- parked answers, in order, once they are ready

What must stay true:
- Answers leave in the order of their requests, however late an earlier one gets ready.
- A frame's memory belongs to the connection only until `dispatch` returns: whoever keeps bytes copies them.
- Nothing grows without bound. While `PARKED_LIMIT` answers are waiting, or the requests they answer have more
  than `PARKED_LIMIT_BYTES`, or the outbox is full, the socket is not read: the kernel's window makes the client wait.
- Of what a request brings to others (`due_answers`), four answers at most leave before its own, the rest soon after.
- A client that is above a quota is not read either until its time is over (`mute`); its answers leave all the same.
- Only this connection pays for what its client does: any error here closes this socket and nothing else.
"""

import asyncio
import logging
import socket
import struct
from collections import deque
from mmap import mmap

from ottla.broker.connection_owner import Owner
from ottla.broker.muting import Muting
from ottla.broker.outbox import Outbox, Parts
from ottla.runtime.promise import Promise

logger = logging.getLogger(__name__)

SHARED_BUFFER_BYTES = 1024 * 1024
OWN_BUFFER_ABOVE_BYTES = 96 * 1024
PARKED_LIMIT = 64
PARKED_LIMIT_BYTES = 8 * 1024 * 1024
LENGTH_PREFIX = struct.Struct(">i")
LENGTH_PREFIX_BYTES = LENGTH_PREFIX.size
NEVER = float("inf")

Later = asyncio.Future[Parts | None] | Promise[Parts | None]
Reply = Parts | Later | None


class CloseConnection(Exception):
    """The request cannot be answered in a way the client would understand: hang up, and log why."""


class _Parked:
    """A place in the queue of answers, kept for one that is not ready yet."""

    __slots__ = ("future", "parts", "ready", "request_bytes")

    def __init__(self, parts: Parts | None, future: Later | None, request_bytes: int) -> None:
        self.parts = parts
        self.future = future
        self.request_bytes = request_bytes
        self.ready = future is None


class Connection:
    __slots__ = (
        "_blocked",
        "_closing",
        "_filled",
        "_large",
        "_large_size",
        "_large_view",
        "_muting",
        "_outbox",
        "_parked",
        "_parked_bytes",
        "_prefix",
        "_reading",
        "_socket",
        "_waiting_for_buffer",
        "client_software",
        "closed",
        "descriptor",
        "large_since",
        "last_active",
        "listener",
        "owner",
        "peer_host",
        "peer_port",
    )

    def __init__(self, owner: Owner, sock: socket.socket, peer_host: str, peer_port: int, listener: str) -> None:
        self.owner = owner
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.listener = listener
        self.client_software = ""
        self.closed = False
        self.descriptor = sock.fileno()
        self.last_active = owner.loop.time()
        self.large_since = NEVER
        self._socket = sock
        self._prefix = b""
        self._large: mmap | None = None
        self._large_view: memoryview | None = None
        self._large_size = 0
        self._filled = 0
        self._parked: deque[_Parked] = deque()
        self._parked_bytes = 0
        self._outbox = Outbox(sock, owner.loop, owner.executor, went_on=self._sent_some, broken=self.close)
        self._reading = False
        self._blocked = False
        self._muting: Muting | None = None
        self._waiting_for_buffer = False
        self._closing = False

    def start(self) -> None:
        self._start_reading()

    @property
    def busy(self) -> bool:
        """Whether an answer is still owed or unsent."""
        return bool(self._parked or self._outbox)

    # Receiving

    def _start_reading(self) -> None:
        if not self._reading and not self.closed and not self._closing:
            self._reading = True
            self.owner.loop.add_reader(self.descriptor, self._on_readable)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self.owner.loop.remove_reader(self.descriptor)

    def _on_readable(self) -> None:
        self.owner.vigil.arrived()
        due_answers = self.owner.due_answers
        due_answers.hold()
        try:
            if self._large_view is not None:
                self._receive_large()
            else:
                self._receive_shared()
        except (BlockingIOError, InterruptedError):
            return
        except (ConnectionError, TimeoutError):
            self.close()
        except Exception as error:
            self._hang_up(error)
        finally:
            due_answers.release()

    def _receive_shared(self) -> None:
        shared = self.owner.shared_buffer
        prefix = self._prefix
        kept = len(prefix)
        if kept:
            shared[:kept] = prefix
            received = self._socket.recv_into(shared[kept:])
        else:
            received = self._socket.recv_into(shared)
        if not received:
            self.close()
            return
        self.last_active = self.owner.loop.time()
        self._prefix = b""
        self._cut_frames(shared, kept + received)

    def _receive_large(self) -> None:
        """Receive until the frame is whole or the socket is empty: a turn of the loop costs more than a call."""
        view, size = self._large_view, self._large_size
        assert view is not None
        self.last_active = self.owner.loop.time()
        while self._filled < size:
            received = self._socket.recv_into(view[self._filled : size])
            if not received:
                self.close()
                return
            self._filled += received
        try:
            self._handle_frame(view[LENGTH_PREFIX_BYTES:size])
        finally:
            self._release_large()
        self.owner.due_answers.give_first()
        self._flush()

    def _cut_frames(self, buffer: memoryview, end: int) -> None:
        """Handle the whole frames in `buffer[:end]` and keep what is left of the last one."""
        position = 0
        limit = self.owner.request_limit_bytes
        while end - position >= LENGTH_PREFIX_BYTES and not self._blocked:
            (size,) = LENGTH_PREFIX.unpack_from(buffer, position)
            if not 0 <= size <= limit:
                raise CloseConnection(
                    f"a request of {size} bytes was announced; socket.request.max.bytes allows {limit}"
                )
            frame_end = position + LENGTH_PREFIX_BYTES + size
            if frame_end > end:
                if size > OWN_BUFFER_ABOVE_BYTES:
                    self._begin_large(LENGTH_PREFIX_BYTES + size, buffer[position:end])
                    position = end
                break
            self._handle_frame(buffer[position + LENGTH_PREFIX_BYTES : frame_end])
            if self.closed:
                return
            position = frame_end
        if position < end:
            self._prefix = bytes(buffer[position:end])
        self.owner.due_answers.give_first()
        self._flush()

    def _begin_large(self, size: int, beginning: memoryview) -> None:
        large = self.owner.buffers.lend(size)
        if large is None:
            self._prefix = bytes(beginning)
            self._waiting_for_buffer = True
            self._stop_reading()
            self.owner.wait_for_buffer(self._buffer_available)
            return
        self._prefix = b""
        self._large = large
        self._large_view = memoryview(large)
        self._large_size = size
        self.large_since = self.last_active
        self._filled = len(beginning)
        self._large_view[: self._filled] = beginning

    def _buffer_available(self) -> None:
        self._waiting_for_buffer = False
        if not self.closed and not self._blocked:
            self._resume()
        if self._large is None and not self._waiting_for_buffer:
            self.owner.buffer_returned()

    def _release_large(self) -> None:
        if self._large is not None and self._large_view is not None:
            self._large_view.release()
            self._large_view = None
            self.large_since = NEVER
            large, self._large = self._large, None
            self.owner.buffers.give_back(large)
            self.owner.buffer_returned()

    def _resume(self) -> None:
        """Go on where back-pressure stopped: first with the bytes that were kept, then with the socket."""
        kept, self._prefix = self._prefix, b""
        if kept:
            try:
                self._cut_frames(memoryview(kept), len(kept))
            except Exception as error:
                self._hang_up(error)
        if not self._blocked and not self._waiting_for_buffer:
            self._start_reading()

    # Muting

    @property
    def is_muted(self) -> bool:
        return self._muting is not None

    def mute(self, seconds: float) -> None:
        """Take no further request for this long."""
        if self.closed or self._closing:
            return
        if self._muting is None:
            self._muting = Muting(self.owner, self._unmute)
        self._muting.extend(seconds)
        self._block()

    def _unmute(self) -> None:
        if self._muting is not None:
            self._muting.cancel()
            self._muting = None
            self._unblock()

    # Handling

    def _handle_frame(self, frame: memoryview) -> None:
        reply = self.owner.dispatch(self, frame)
        if reply is None:
            return
        if isinstance(reply, list):
            if self._parked:
                self._park(_Parked(reply, None, len(frame)))
            else:
                self._enqueue(reply)
            return
        if reply.done() and not self._parked:
            parts = reply.result()
            if parts is not None:
                self._enqueue(parts)
            return
        self._park(_Parked(None, reply, len(frame)))
        reply.add_done_callback(self._answer_ready)

    def _park(self, parked: _Parked) -> None:
        self._parked.append(parked)
        self._parked_bytes += parked.request_bytes
        if len(self._parked) >= PARKED_LIMIT or self._parked_bytes >= PARKED_LIMIT_BYTES:
            self._block()

    def _answer_ready(self, future: Later) -> None:
        if self.closed:
            if not future.cancelled():
                future.exception()
            return
        for parked in self._parked:
            if parked.future is future:
                parked.ready = True
                break
        try:
            self._release_answers()
        except (asyncio.CancelledError, Exception) as error:
            # The answers behind the one that failed would come out of order now.
            self._hang_up(error)
            self._give_up_parked()
            self._close_if_done()

    def _release_answers(self) -> None:
        parked = self._parked
        while parked and parked[0].ready:
            first = parked.popleft()
            self._parked_bytes -= first.request_bytes
            parts = first.parts if first.future is None else first.future.result()
            if parts is not None:
                self._enqueue(parts)
        self._flush()
        self._unblock()

    def _block(self) -> None:
        if not self._blocked:
            self._blocked = True
            self._stop_reading()

    def _unblock(self) -> None:
        if (
            self._blocked
            and self._muting is None
            and not self.closed
            and len(self._parked) < PARKED_LIMIT // 2
            and self._outbox.has_room
        ):
            self._blocked = False
            if not self._waiting_for_buffer:
                self._resume()

    def _enqueue(self, parts: Parts) -> None:
        if self._outbox.enqueue(parts):
            self._outbox.flush()
            if self._outbox.is_full:
                self._block()

    def _sent_some(self) -> None:
        """The outbox went on by itself: there may be room for more, or nothing left to wait for."""
        self.last_active = self.owner.loop.time()
        self._close_if_done()
        self._unblock()

    def _flush(self) -> None:
        self._outbox.flush()
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._closing and not self.busy:
            self.close()

    # Closing

    def close_when_sent(self) -> None:
        """Take no more requests; close once what is owed was sent."""
        self._closing = True
        self._prefix = b""
        self._stop_reading()
        self._unmute()
        self._flush()

    def close(self) -> None:
        if self.closed:
            return
        self._stop_reading()
        self.closed = True
        self._unmute()
        self._give_up_parked()
        self._outbox.close()
        self._release_large()
        self._socket.close()
        self.owner.connection_closed(self)

    def _give_up_parked(self) -> None:
        """Nothing is parked any more when a promise says that it was cancelled, which it does at once."""
        given_up = list(self._parked)
        self._parked.clear()
        self._parked_bytes = 0
        for parked in given_up:
            if parked.future is not None:
                parked.future.cancel()

    def _hang_up(self, error: BaseException) -> None:
        """Close because of what one request did; the answers to those before it still leave."""
        peer = (self.peer_host, self.peer_port)
        if isinstance(error, CloseConnection):
            logger.warning("closed the connection from %s:%d: %s", *peer, error)
        else:
            logger.error("a request of %s:%d failed; its connection is closed", *peer, exc_info=error)
        self.close_when_sent()
