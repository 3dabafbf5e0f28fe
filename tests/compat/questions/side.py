"""One of the two brokers: questions in, outcomes out.

Questions that do not depend on one another are pipelined. A broker that hangs up is asked the rest on a new connection;
the first request without an answer is the one it hung up on, since both brokers answer in order and read no further.
"""

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.compat.questions.answers import Known, Plain, plain
from tests.compat.questions.batches import patched
from tests.compat.questions.question import DATA, PRODUCER_ID, SESSION, Ask, Case, RawAsk, member, topic_id, transform
from tests.peers.ports import LOOPBACK, receive_exactly

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.framing import decode_response, encode_request
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ottla.protocol.messages.create_topics import CreateTopicsResponse
from ottla.protocol.messages.end_txn import EndTxnResponse
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.list_groups import ListGroupsResponse
from ottla.protocol.messages.list_transactions import ListTransactionsResponse
from ottla.protocol.messages.metadata import MetadataResponse

WINDOW = 24
PATIENCE_SECONDS = 20.0
SILENCE_SECONDS = 1.5
SETTLE_SECONDS = 4.0
LINGER_SECONDS = 0.01
# The state of a transaction whose end is decided and not yet in all of its partitions.
IN_BETWEEN = "Prepare"
CLIENT_ID = "questions"
_LENGTH = struct.Struct(">i")
_PRODUCER_OF_BATCH, _PRODUCER_BYTES = slice(43, 51), struct.pack(">q", PRODUCER_ID)
# Ids of members that a question chooses are short; those that brokers make up are not.
_CHOSEN_CHARACTERS = 21


@dataclass(frozen=True)
class Outcome:
    """What came of one request: `kind` is answered, closed, silent or undecodable."""

    kind: str
    answer: Plain = None


CLOSED, SILENT = Outcome("closed"), Outcome("silent")
Agrees = Callable[[Case, int, Outcome], bool]


class Side:
    def __init__(self, name: str, port: int, data: str) -> None:
        self.name = name
        self.port = port
        self.data = data
        self.actual: dict[bytes, bytes] = {}
        self.placeholders: dict[bytes, bytes] = {}
        self._session = 0
        self._producer_id = -1
        self._members: list[str] = []
        self._connection: socket.socket | None = None

    def learn(self, placeholder: bytes, actual: bytes) -> None:
        self.actual[placeholder] = actual
        self.placeholders[actual] = placeholder

    def answer_all(self, cases: Sequence[Case], agrees: Agrees | None = None) -> list[list[Outcome]]:
        """The outcomes of all asks of all cases; with `agrees`, asks that settle are repeated until it holds."""
        outcomes: dict[int, list[Outcome]] = {}
        for numbers in _runs(cases):
            if len(numbers) == 1:
                outcomes[numbers[0]] = list(self._answer_one(cases[numbers[0]], agrees))
                continue
            asks = [cases[number].asks[0] for number in numbers]
            for number, outcome in zip(numbers, self._pipelined(asks), strict=True):
                outcomes[number] = [outcome]
        self._hang_up()
        return [outcomes[number] for number in range(len(cases))]

    def ask(self, request: Request, version: int | None = None) -> Response:
        """One question of the set-up, which must be answered."""
        chosen = request.MAX_VERSION if version is None else version
        connection = self._connected()
        connection.sendall(encode_request(self._ours(request), chosen, 1, CLIENT_ID))
        return decode_response(type(request), chosen, _frame(connection))[1]

    # One case after the other

    def _answer_one(self, case: Case, agrees: Agrees | None) -> Iterator[Outcome]:
        if case.alone or case.silent or case.hangs:
            self._hang_up()
        self._session = 0
        self._producer_id = -1
        self._members = []
        for number, ask in enumerate(case.asks):
            if case.silent:
                yield self._silence(ask)
                continue
            patience = SILENCE_SECONDS if case.hangs and self.name == "kafka" else PATIENCE_SECONDS
            outcome = self._once(ask, patience)
            deadline = time.monotonic() + SETTLE_SECONDS
            while ask.lingers and agrees is None and time.monotonic() < deadline:
                time.sleep(LINGER_SECONDS)
                before, outcome = outcome, self._once(ask, patience)
                if outcome == before and IN_BETWEEN not in repr(outcome):
                    break
            while (ask.settles or ask.lingers) and agrees is not None and not agrees(case, number, outcome):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.01)
                outcome = self._once(ask, patience)
            yield outcome
        if case.alone or case.silent or case.hangs:
            self._hang_up()

    def _once(self, ask: Ask | RawAsk, patience_seconds: float = PATIENCE_SECONDS) -> Outcome:
        connection = self._connected()
        try:
            connection.sendall(self._encoded(ask, 1))
        except ConnectionError:
            self._hang_up()
            return CLOSED
        return self._receive(ask, patience_seconds)

    def _silence(self, ask: Ask | RawAsk) -> Outcome:
        """Ask without expecting an answer; a second question tells whether the connection lives on."""
        connection = self._connected()
        probe = encode_request(ApiVersionsRequest(), 0, 2, CLIENT_ID)
        with contextlib.suppress(ConnectionError):
            connection.sendall(self._encoded(ask, 1) + probe)
        try:
            frame = _frame(connection)
        except (EOFError, ConnectionError):
            return CLOSED
        return SILENT if _LENGTH.unpack_from(frame)[0] == 2 else self._decoded(ask, frame)

    # Many at once

    def _pipelined(self, asks: list[Ask | RawAsk]) -> Iterator[Outcome]:
        done = 0
        while done < len(asks):
            connection = self._connected()
            window = asks[done : done + WINDOW]
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"".join(self._encoded(ask, number) for number, ask in enumerate(window)))
            for ask in window:
                outcome = self._receive(ask, PATIENCE_SECONDS)
                done += 1
                yield outcome
                if self._connection is None:
                    break

    def _receive(self, ask: Ask | RawAsk, patience_seconds: float) -> Outcome:
        connection = self._connected()
        connection.settimeout(patience_seconds)
        try:
            frame = _frame(connection)
        except (EOFError, ConnectionError):
            self._hang_up()
            return CLOSED
        except TimeoutError:
            self._hang_up()
            return SILENT
        return self._decoded(ask, frame)

    def _decoded(self, ask: Ask | RawAsk, frame: bytes) -> Outcome:
        request = type(ask.request) if isinstance(ask, Ask) else ask.request
        try:
            _, response = decode_response(request, ask.version, frame)
        except MalformedMessage as error:
            return Outcome("undecodable", str(error))
        self._learn_from(response)
        if ask.only:
            _keep_only(response, ask.only)
        members = {actual: member(number) for number, actual in enumerate(self._members, start=1)}
        known = Known(self.placeholders, self.port, self.data, int(time.time() * 1000), members)
        return Outcome("answered", plain(response, ask.version, known))

    def _learn_from(self, response: Response) -> None:
        if isinstance(response, FetchResponse) and response.session_id:
            self._session = response.session_id
        if isinstance(response, JoinGroupResponse | ConsumerGroupHeartbeatResponse):
            given = response.member_id
            if given and given not in self._members and len(given) > _CHOSEN_CHARACTERS:
                self._members.append(given)
        if isinstance(response, InitProducerIdResponse | EndTxnResponse) and response.producer_id >= 0:
            self._producer_id = response.producer_id
        if isinstance(response, CreateTopicsResponse | MetadataResponse):
            for topic in response.topics:
                if topic.name and any(topic.topic_id):
                    self.learn(topic_id(topic.name), topic.topic_id)

    # Encoding

    def _encoded(self, ask: Ask | RawAsk, correlation_id: int) -> bytes:
        if isinstance(ask, RawAsk):
            return ask.frame if ask.prefixed else _LENGTH.pack(len(ask.frame)) + ask.frame
        return encode_request(self._ours(ask.request), ask.version, correlation_id, CLIENT_ID)

    def _ours(self, request: Request) -> Request:
        def change(leaf: Any) -> Any:
            if isinstance(leaf, bytes) and leaf[_PRODUCER_OF_BATCH] == _PRODUCER_BYTES:
                return patched(leaf, producer_id=self._producer_id)
            if isinstance(leaf, bytes) and len(leaf) == 16:
                if leaf not in self.actual:
                    self.placeholders.setdefault(leaf, leaf)
                return self.actual.get(leaf, leaf)
            if isinstance(leaf, str):
                return self._our_text(leaf)
            if leaf == PRODUCER_ID and isinstance(leaf, int):
                return self._producer_id
            return self._session if leaf == SESSION and isinstance(leaf, int) else leaf

        ours = transform(request, change)
        assert isinstance(ours, Request)
        return ours

    def _our_text(self, text: str) -> str:
        text = text.replace(DATA, self.data)
        if "@member-" in text:
            for number, actual in enumerate(self._members, start=1):
                text = text.replace(member(number), actual)
        return text

    # The connection

    def _connected(self) -> socket.socket:
        if self._connection is None:
            self._connection = socket.create_connection((LOOPBACK, self.port), timeout=PATIENCE_SECONDS)
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _frame(connection: socket.socket) -> bytes:
    (size,) = _LENGTH.unpack(receive_exactly(connection, _LENGTH.size))
    return receive_exactly(connection, size)


_NAMING = (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT)


def _keep_only(response: Response, beginning: str) -> None:
    if isinstance(response, ListGroupsResponse):
        response.groups = [group for group in response.groups if group.group_id.startswith(beginning)]
    if isinstance(response, ListTransactionsResponse):
        response.transaction_states = [
            state for state in response.transaction_states if state.transactional_id.startswith(beginning)
        ]


def _runs(cases: Sequence[Case]) -> Iterator[list[int]]:
    """Neighbours that can be pipelined, by their numbers; all others by themselves."""
    run: list[int] = []
    for number, case in enumerate(cases):
        if len(case.asks) > 1 or case.alone or case.silent or case.hangs or case.asks[0].settles or case.api in _NAMING:
            if run:
                yield run
            run = []
            yield [number]
        else:
            run.append(number)
    if run:
        yield run
