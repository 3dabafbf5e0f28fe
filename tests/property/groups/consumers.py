"""Consumers of a classic group as a broker sees them, and what they were told so far."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.unit.groups.classic.desk import Desk

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from ottla.runtime.promise import Promise

PARTITIONS = frozenset(range(5))
COMES_BACK_WITHOUT_ID = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)


@dataclass
class History:
    """All assignments that any consumer was given, by generation. Nothing in it may contradict anything else.

    `answered` are the generations of the answers in the order in which the broker gave them. A consumer that hangs
    hears of its own later, when others may be in another generation.
    """

    owners: dict[int, dict[int, str]] = field(default_factory=dict)
    parts: dict[tuple[int, str], bytes] = field(default_factory=dict)
    answered: list[int] = field(default_factory=list)

    def assigned(self, generation: int, owner: str, part: bytes) -> None:
        assert self.answered == sorted(self.answered), f"answers of the generations {self.answered}"
        assert self.parts.setdefault((generation, owner), part) == part, f"{owner} got two parts of {generation}"
        owners = self.owners.setdefault(generation, {})
        for partition in part:
            assert owners.setdefault(partition, owner) == owner, f"two own {partition} in generation {generation}"


class Consumer:
    """Does what a client library does, one request at a time, when a test lets it.

    `waits` is the answer it waits for, `part` what it owns as a member of its generation.
    """

    def __init__(self, desk: Desk, history: History, name: str, *, is_static: bool, version: int) -> None:
        self._desk = desk
        self._history = history
        self.name = name
        self.instance = name if is_static else None
        self._version = version
        self._protocols = {"range": b"r", "sticky": b"s"} if version % 2 else {"sticky": b"s", "range": b"r"}
        self.is_up = False
        self.is_hung = False
        self._reset()

    def _reset(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.part: bytes | None = None
        self._protocol: str | None = None
        self._joining: Promise[JoinGroupResponse] | None = None
        self._syncing: Promise[SyncGroupResponse] | None = None

    # What happens to it

    def start(self) -> None:
        self._reset()
        self.is_up, self.is_hung = True, False

    def die(self) -> None:
        """Its connection is closed: nobody hears what it was to be told."""
        for waiting in (self._joining, self._syncing):
            if waiting is not None:
                waiting.cancel()
        self.is_up = False
        self._reset()

    def leave(self) -> None:
        if self.member_id and self.instance is None:
            self._try(lambda: self._desk.leave((self.member_id, None)))
        self.die()

    # What it does

    def step(self) -> None:
        if not self.is_up or self.is_hung:
            return
        if self._joining is not None:
            self._hear_of_generation(self._joining)
        elif self._syncing is not None:
            self._hear_of_part(self._syncing)
        elif self.part is None:
            self._join()
        else:
            self._beat()

    def _join(self) -> None:
        self.part = None
        self._try(self._send_join)

    def _send_join(self) -> None:
        self._joining = self._desk.join(
            self.member_id,
            instance=self.instance,
            version=self._version,
            protocols=self._protocols,
            rebalance_ms=8_000,
            session_ms=6_000,
        )

    def _hear_of_generation(self, promise: Promise[JoinGroupResponse]) -> None:
        if not promise.done():
            return
        self._joining = None
        try:
            answer = promise.result()
        except KafkaError:
            return
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif answer.error_code:
            self._refused(ErrorCode(answer.error_code))
        else:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self._protocol = answer.protocol_name
            self._try(lambda: self._send_sync(answer))

    def _send_sync(self, answer: JoinGroupResponse) -> None:
        parts: dict[str, bytes] = {}
        if answer.leader == answer.member_id and not answer.skip_assignment:
            ids = sorted(member.member_id for member in answer.members)
            parts = {member_id: bytes(sorted(PARTITIONS)[number :: len(ids)]) for number, member_id in enumerate(ids)}
        generation = self.generation
        self._syncing = self._desk.sync(
            self.member_id, generation, parts, instance=self.instance, protocol=self._protocol
        )
        self._syncing.add_done_callback(lambda answer: self._note(answer, generation))

    def _note(self, promise: Promise[SyncGroupResponse], generation: int) -> None:
        if not promise.cancelled() and promise.exception() is None and not promise.result().error_code:
            self._history.answered.append(generation)

    def _hear_of_part(self, promise: Promise[SyncGroupResponse]) -> None:
        if not promise.done():
            return
        self._syncing = None
        try:
            answer = promise.result()
        except KafkaError:
            return
        if answer.error_code:
            self._refused(ErrorCode(answer.error_code))
            return
        self._history.assigned(self.generation, self.instance or self.member_id, answer.assignment)
        self.part = answer.assignment

    def _beat(self) -> None:
        code = self._desk.heartbeat(self.member_id, self.generation, self.instance)
        if code:
            self.part = None
            self._refused(code)

    def _refused(self, code: ErrorCode) -> None:
        """A static member whose new id was not kept is taken for its own past: that is fatal, and it is restarted."""
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.start()
        elif code in COMES_BACK_WITHOUT_ID:
            self.member_id = ""

    def _try(self, request: Callable[[], object]) -> None:
        try:
            request()
        except KafkaError as error:
            self._refused(error.code)
