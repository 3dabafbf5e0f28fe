"""One connection to one broker: requests out, answers in, in order.

    ask -> encode -> send now, or when the socket takes more
                                     |
    future <- decode <- take frames <- receive, where the next frame is to be (`connections_frames`)

What must stay true:
- Answers come in the order of the requests. One with another correlation id ends the connection.
- An answer is decoded in place: the record data in it are views of its frame's memory.
- All frames that came are cut before the first is answered: whoever is told may ask the next question in that call.
- A request that is given up leaves its place in the queue: its answer, if it still comes, is skipped. A broker that
  owes an answer for longer than `request.timeout.ms` is given up as a whole, as the answers behind it wait too.
- A request that has no answer is done when its last byte was handed to the system. A broker that takes it not within
  `request.timeout.ms` is given up, too.
- When the connection ends, everybody who waits learns why, once.
- The timer is one for the connection, not one for each request.

Plain and TLS sockets alike: an `SSLSocket` that does not block is read and written in the same way, except that it may
hold bytes which the selector does not see.
"""

import asyncio
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

from ottla.client.connections_answers import copy_of, decode_answer
from ottla.client.connections_frames import Frames
from ottla.client.connections_versions import Plan, Versions
from ottla.client.connections_waiting import Prompt, Tellings, Waiting
from ottla.client.errors import BrokerUnavailable, InvalidAnswer, OttlaError
from ottla.client.prompt_io import prompt
from ottla.client.security.tls import tls_failure
from ottla.protocol.encoder import Part
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.framing import MERGE_BELOW_BYTES, merge_small
from ottla.protocol.message import Request

TURN_BYTES = 8 * 1024 * 1024
MOST_PARTS = 512

_FRAME_HEAD = struct.Struct(">ihhih")
_HEAD_BYTES = _FRAME_HEAD.size - 4
_INT32 = struct.Struct(">i")
_CORRELATION_MASK = 0x7FFFFFFF
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Connection:
    """Belongs to the loop it was made in. `name` is host:port, for texts; `lost` is called once, when it has ended."""

    __slots__ = (
        "_correlation_id",
        "_frames",
        "_is_tls",
        "_loop",
        "_lost",
        "_one_by_one",
        "_outbox",
        "_receiving",
        "_request_timeout",
        "_socket",
        "_timer",
        "_timer_at",
        "_waiting",
        "_was_useful",
        "_writing",
        "descriptor",
        "ended_by",
        "last_used",
        "name",
        "reauthenticate_at",
        "tellings",
        "throttled_until",
        "versions",
    )

    def __init__(
        self,
        sock: socket.socket,
        name: str,
        versions: Versions,
        *,
        limit_bytes: int,
        request_timeout_seconds: float,
        lost: Callable[["Connection"], None],
    ) -> None:
        self.name = name
        self.versions = versions
        self.ended_by: OttlaError | None = None
        self.throttled_until = 0.0
        self.reauthenticate_at = float("inf")
        self._loop = asyncio.get_running_loop()
        self.last_used = self._loop.time()
        self._socket = prompt(sock)
        self.descriptor = sock.fileno()
        self._is_tls = isinstance(sock, ssl.SSLSocket)
        # Neither TLS nor Windows can send several pieces in one call.
        self._one_by_one = self._is_tls or not hasattr(sock, "sendmsg")
        self._request_timeout = request_timeout_seconds
        self._lost = lost
        self._frames = Frames(limit_bytes)
        self._waiting: deque[Waiting] = deque()
        self.tellings = Tellings()
        self._outbox: deque[Part] = deque()
        self._writing = False
        self._receiving = False
        self._was_useful = False
        self._correlation_id = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._loop.add_reader(self.descriptor, self._on_readable)

    @property
    def in_flight(self) -> int:
        """How many answers are owed, and how many requests without one are not sent yet."""
        return len(self._waiting) + len(self.tellings)

    # Asking

    def ask(
        self,
        request: Request,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
        future: "asyncio.Future[Any] | None" = None,
    ) -> "asyncio.Future[Any]":
        """Send it now; the future, a given one or a new one, has the answer, or why there is none."""
        if self.ended_by is not None:
            raise copy_of(self.ended_by)
        plan, parts = self.versions.encode(request, max_version)
        now = self.last_used = self._loop.time()
        give_up_at = deadline = now + self._request_timeout
        if timeout_seconds is not None:
            deadline = now + timeout_seconds
            give_up_at = max(deadline, give_up_at)
        if future is None:
            future = self._loop.create_future()
        self._await(Waiting(self._send(plan, parts), plan, future, deadline, give_up_at))
        return future

    def ask_prompt(self, request: Request, max_version: int | None = None) -> Prompt:
        """The same with `request.timeout.ms`, and an answer that is told at once."""
        if self.ended_by is not None:
            raise copy_of(self.ended_by)
        plan, parts = self.versions.encode(request, max_version)
        self.last_used = self._loop.time()
        deadline = self.last_used + self._request_timeout
        prompt = Prompt()
        self._await(Waiting(self._send(plan, parts), plan, prompt, deadline, deadline))
        return prompt

    def _await(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        if waiting.deadline < self._timer_at:
            self._watch(waiting.deadline)
        if self._outbox and not self._writing:
            self._flush()

    def tell(self, request: Request, max_version: int | None = None) -> "asyncio.Future[None]":
        """Send what the broker gives no answer to: Produce with `acks=0`. The future is done when it was sent."""
        if self.ended_by is not None:
            raise copy_of(self.ended_by)
        plan, parts = self.versions.encode(request, max_version)
        self.last_used = self._loop.time()
        self._send(plan, parts)
        future: asyncio.Future[None] = self._loop.create_future()
        self.tellings.add(future, self.last_used + self._request_timeout, sum(map(len, self._outbox)))
        if not self._writing:
            self._flush()
        if self.tellings.deadline < self._timer_at:
            self._watch(self.tellings.deadline)
        return future

    def _send(self, plan: Plan, parts: list[Part]) -> int:
        """Put a request into the outbox; answers its correlation id."""
        correlation_id = self._correlation_id = (self._correlation_id + 1) & _CORRELATION_MASK
        tail = plan.tail
        if len(parts) == 1:
            body = parts[0]
            size = _HEAD_BYTES + len(tail) + len(body)
            head = _FRAME_HEAD.pack(size, plan.api_key, plan.version, correlation_id, plan.client_id_bytes)
            self._outbox.append(head + tail + body)
            return correlation_id
        size = _HEAD_BYTES + len(tail) + sum(map(len, parts))
        head = _FRAME_HEAD.pack(size, plan.api_key, plan.version, correlation_id, plan.client_id_bytes)
        parts[0] = head + tail + parts[0]
        self._outbox.extend(merge_small(parts) if len(parts) > 3 or len(parts[1]) < MERGE_BELOW_BYTES else parts)
        return correlation_id

    # Sending

    def _flush(self) -> None:
        """Send until the outbox is empty or the socket full."""
        outbox = self._outbox
        try:
            while outbox:
                if len(outbox) == 1 or self._one_by_one:
                    sent = self._socket.send(outbox[0])
                else:
                    parts = list(outbox) if len(outbox) <= MOST_PARTS else [outbox[i] for i in range(MOST_PARTS)]
                    sent = self._socket.sendmsg(parts)
                self._drop(sent)
        except _NOT_NOW:
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self.descriptor, self._flush)
            return
        except OSError as error:
            # A broker that refuses says why before it closes: that may be waiting to be read.
            if not self._receiving:
                self._on_readable()
            self.end(self._broken(error))
            return
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self.descriptor)

    def _drop(self, sent: int) -> None:
        if self.tellings:
            self.tellings.sent(sent)
        outbox = self._outbox
        while outbox and sent >= (size := len(outbox[0])):
            sent -= size
            outbox.popleft()
        if sent:
            outbox[0] = memoryview(outbox[0])[sent:]

    # Receiving

    def _on_readable(self) -> None:
        """Receive until the socket is empty, but not more than a turn's share."""
        turn = 0
        self._receiving = True
        try:
            while turn < TURN_BYTES:
                room = self._frames.room()
                received = self._socket.recv_into(room)
                if not received:
                    self.end(self._gone())
                    return
                turn += received
                self._received(received)
                if self.ended_by is not None or (received < len(room) and not self._is_tls):
                    return
        except _NOT_NOW:
            return
        except OSError as error:
            self.end(self._broken(error))
            return
        except (MalformedMessage, InvalidAnswer) as error:
            self.end(InvalidAnswer(f"{self.name} gave an answer that is none: {error}"))
            return
        finally:
            self._receiving = False
        if self._is_tls:
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self.ended_by is None:
            self._on_readable()

    def _received(self, count: int) -> None:
        frames = self._frames
        for frame in frames.take(count):
            if self.ended_by is None:
                self._answer(frame)
        if frames.problem is not None:
            raise frames.problem

    def _answer(self, frame: memoryview) -> None:
        if not self._waiting:
            raise InvalidAnswer("nothing was asked")
        waiting = self._waiting[0]
        (correlation_id,) = _INT32.unpack_from(frame)
        if correlation_id != waiting.correlation_id:
            raise InvalidAnswer(f"it has correlation id {correlation_id}, expected was {waiting.correlation_id}")
        plan = waiting.plan
        if waiting.future.done() and not plan.has_throttle:
            self._waiting.popleft()
            return
        response = decode_answer(plan, frame)
        self._waiting.popleft()
        self._was_useful |= not plan.is_api_versions
        if plan.has_throttle and response.throttle_time_ms > 0:  # type: ignore[attr-defined]  # the plan knows
            self.throttled_until = self._loop.time() + response.throttle_time_ms / 1000  # type: ignore[attr-defined]
        if not waiting.future.done():
            waiting.future.set_result(response)

    # Time

    def _watch(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._on_time)

    def _on_time(self) -> None:
        """Give up requests whose time is over, and the broker when it owes an answer for too long."""
        self._timer, self._timer_at = None, float("inf")
        now = self._loop.time()
        upcoming = self.tellings.deadline
        if upcoming <= now:
            self.end(BrokerUnavailable(f"{self.name} did not take what was sent to it: it is overloaded or gone"))
            return
        for waiting in list(self._waiting):
            if waiting.give_up_at <= now:
                self.end(
                    BrokerUnavailable(
                        f"{self.name} did not answer {waiting.plan.name} in time; it may have been carried out. The "
                        "broker is overloaded or gone: try again, or raise request.timeout.ms"
                    )
                )
                return
            if waiting.deadline > now:
                upcoming = min(upcoming, waiting.deadline)
                continue
            upcoming = min(upcoming, waiting.give_up_at)
            if not waiting.future.done():
                text = f"{self.name} did not answer {waiting.plan.name} in time; it may have been carried out"
                waiting.future.set_exception(BrokerUnavailable(text))
        if upcoming < float("inf"):
            self._watch(upcoming)

    # Ending

    def _gone(self) -> OttlaError:
        if not self._was_useful:
            return BrokerUnavailable(
                f"{self.name} closed the connection before it answered anything of use: does it speak Kafka's "
                "protocol, and is security.protocol the one of that port?"
            )
        return BrokerUnavailable(
            f"{self.name} closed the connection; what it had not answered may have been carried out"
        )

    def _broken(self, error: OSError) -> OttlaError:
        if isinstance(error, ssl.SSLError):
            return tls_failure(error, self.name)
        return BrokerUnavailable(f"the connection to {self.name} broke: {error.strerror or error}")

    def end(self, error: OttlaError) -> None:
        """Close it; those who wait get a copy of `error`."""
        if self.ended_by is not None:
            return
        self.ended_by = error
        self._loop.remove_reader(self.descriptor)
        if self._writing:
            self._loop.remove_writer(self.descriptor)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._socket.close()
        self._outbox.clear()
        self._frames.give_up()
        waiting, self._waiting = self._waiting, deque()
        # Whoever is told at once may ask again at once: not on this connection.
        self._lost(self)
        self.tellings.end(error)
        for one in waiting:
            if not one.future.done():
                one.future.set_exception(copy_of(error))
