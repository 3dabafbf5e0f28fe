"""What a request brings to others leaves before its own answer."""

import asyncio

import pytest
from tests.unit.broker.serving import Peer, Serving, frame, serving, until

from ottla.broker.connection import CloseConnection, Connection, Reply
from ottla.broker.due_answers import MOST_BEFORE_OWN, DueAnswers
from ottla.broker.outbox import Parts
from ottla.broker.server import Server
from ottla.runtime import FileRange
from ottla.runtime.promise import Promise

WAIT, WAKE, BREAK = b"wait", b"wake", b"break"


class Told:
    """A part of an answer that tells when it leaves."""

    path = "told"

    def __init__(self, log: list[str], name: str) -> None:
        self._log = log
        self._name = name

    def read_resident(self, position: int, length: int) -> bytes:
        self._log.append(self._name)
        return frame(self._name.encode())

    def parts(self) -> Parts:
        return [FileRange(self, 0, len(frame(self._name.encode())))]  # type: ignore[arg-type]  # reads itself only


class Polls:
    """A dispatch under which `wait` is answered when somebody else comes with `wake`."""

    def __init__(self) -> None:
        self.server: Server
        self.left: list[str] = []
        self.waiting: list[Promise[Parts | None]] = []

    async def peers(self, running: Serving, count: int) -> list[Peer]:
        """That many, all of whom wait."""
        self.server = running.server
        peers = [await running.connect() for _ in range(count)]
        for peer in peers:
            await peer.send(frame(WAIT))
        await until(lambda: len(self.waiting) == count)
        return peers

    def __call__(self, connection: Connection, content: memoryview) -> Reply:
        if content == WAIT:
            promise: Promise[Parts | None] = Promise()
            self.waiting.append(promise)
            return promise
        waiting, self.waiting = self.waiting, []
        for promise in waiting:
            self.server.due_answers.add(lambda promise=promise: promise.resolve(Told(self.left, "poll").parts()))  # type: ignore[misc]
        if content == BREAK:
            raise CloseConnection("it is over")
        return Told(self.left, "own").parts()


@pytest.mark.parametrize("polls", [0, 1, MOST_BEFORE_OWN, 3 * MOST_BEFORE_OWN])
def test_some_who_wait_are_answered_before_whoever_ended_their_wait(polls: int) -> None:
    async def scenario() -> None:
        dispatch = Polls()
        async with serving(dispatch) as running:
            peers = await dispatch.peers(running, polls)
            producer = await running.connect()
            assert await producer.ask(WAKE) == b"own"
            for peer in peers:
                assert await peer.answer() == b"poll"
        first = min(polls, MOST_BEFORE_OWN)
        assert dispatch.left == ["poll"] * first + ["own"] + ["poll"] * (polls - first)

    asyncio.run(scenario())


def test_many_requests_in_one_piece_are_carried_out_before_anybody_is_answered() -> None:
    async def scenario() -> None:
        dispatch = Polls()
        async with serving(dispatch) as running:
            (peer,) = await dispatch.peers(running, 1)
            producer = await running.connect()
            await producer.send(3 * frame(WAKE))
            assert [await producer.answer() for _ in range(3)] == [b"own"] * 3
            assert await peer.answer() == b"poll"
        assert dispatch.left == ["poll", "own", "own", "own"]

    asyncio.run(scenario())


@pytest.mark.parametrize("polls", [1, 3 * MOST_BEFORE_OWN])
def test_who_waits_is_answered_also_where_the_request_ends_its_connection(polls: int) -> None:
    async def scenario() -> None:
        dispatch = Polls()
        async with serving(dispatch) as running:
            peers = await dispatch.peers(running, polls)
            producer = await running.connect()
            await producer.send(frame(BREAK))
            assert await producer.is_closed()
            for peer in peers:
                assert await peer.answer() == b"poll"

    asyncio.run(scenario())


def test_what_is_due_outside_of_a_request_comes_in_the_next_turn() -> None:
    async def scenario() -> None:
        due, given = DueAnswers(), []
        for number in range(2 * MOST_BEFORE_OWN):
            due.add(lambda number=number: given.append(number))  # type: ignore[misc]
        assert given == []
        await asyncio.sleep(0)
        assert given == list(range(2 * MOST_BEFORE_OWN))
        await asyncio.sleep(0)
        assert given == list(range(2 * MOST_BEFORE_OWN)), "each of them once"

    asyncio.run(scenario())


def test_an_answer_that_brings_about_others_does_not_nest() -> None:
    async def scenario() -> None:
        due, given = DueAnswers(), []

        def again(depth: int) -> None:
            given.append(depth)
            if depth:
                due.add(lambda: again(depth - 1))
                due.give_first()
                assert given[-1] == depth, "it waits for its turn"

        due.hold()
        due.add(lambda: again(3))
        due.give_first()
        assert given == [3]
        due.release()
        for _ in range(4):
            await asyncio.sleep(0)
        assert given == [3, 2, 1, 0]

    asyncio.run(scenario())


def test_one_that_fails_does_not_keep_the_others() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        complaints: list[object] = []
        loop.set_exception_handler(lambda _, context: complaints.append(context["exception"]))
        due, given = DueAnswers(), []

        def fail() -> None:
            raise RuntimeError("no answer")

        due.add(fail)
        due.add(lambda: given.append("answer"))
        for _ in range(3):
            await asyncio.sleep(0)
        assert given == ["answer"]
        assert len(complaints) == 1

    asyncio.run(scenario())
