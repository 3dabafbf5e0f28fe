"""Sockets and looks at sockets that keep the interpreter do what Python's own do."""

import os
import selectors
import signal
import socket
import threading
from collections.abc import Iterator

import pytest

from ottla.client import prompt_io
from ottla.client.sync.lent_loop import LentLoop

LARGE_BYTES = 200_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    here.setblocking(False)
    with here, there:
        yield here, there


def test_it_is_compiled_where_this_project_is_tested() -> None:
    assert prompt_io.ready_now is not None
    with socket.socket() as sock:
        assert prompt_io.prompt(sock) is not sock


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, LARGE_BYTES])
def test_bytes_arrive_whatever_their_size(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    here, there = pair
    sender = prompt_io.prompt(here)
    there.settimeout(20.0)
    data = bytes(range(256)) * (size // 256 + 1)
    left, got = memoryview(data)[:size], b""
    while left:
        sent = sender.send(left)
        got += there.recv(sent, socket.MSG_WAITALL)
        left = left[sent:]
    assert sender.send(b"") == 0
    assert sender.sendmsg([b"one ", memoryview(b"two")]) == 7
    assert got + there.recv(7, socket.MSG_WAITALL) == data[:size] + b"one two"


@pytest.mark.parametrize("room_bytes", [1, 64 * 1024, 64 * 1024 + 1])
def test_bytes_are_received_into_rooms_of_any_size(pair: tuple[socket.socket, socket.socket], room_bytes: int) -> None:
    here, there = pair
    receiver, room = prompt_io.prompt(here), memoryview(bytearray(room_bytes))
    there.sendall(b"abc")
    received = receiver.recv_into(room)
    assert bytes(room[:received]) == b"abc"[:received]
    assert received == min(3, room_bytes)


@pytest.mark.parametrize("size", [1000, LARGE_BYTES])
def test_a_socket_that_is_full_or_empty_says_so_at_once(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    sock = prompt_io.prompt(pair[0])
    with pytest.raises(BlockingIOError):
        sock.recv_into(memoryview(bytearray(size)))
    with pytest.raises(BlockingIOError):
        _send_often(sock, bytes(size))


def _send_often(sock: prompt_io.StreamSocket, data: bytes) -> None:
    for _ in range(100_000):
        sock.send(data)


def test_the_end_and_the_loss_of_the_other_side_are_told_as_by_a_socket(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    here, there = pair
    sock = prompt_io.prompt(here)
    there.close()
    assert sock.recv_into(memoryview(bytearray(10))) == 0
    with pytest.raises(BrokenPipeError):
        sock.send(b"x")


def test_a_closed_one_never_touches_the_socket_that_has_its_number_now() -> None:
    old, old_peer = socket.socketpair()
    new, new_peer = socket.socketpair()
    old.setblocking(False)
    new_peer.setblocking(False)
    number, sock = old.fileno(), prompt_io.prompt(old)
    sock.close()
    with old_peer, new, new_peer:
        os.dup2(new.fileno(), number)
        try:
            new_peer.send(b"not for the old one")
            with pytest.raises(OSError, match="Bad file descriptor"):
                sock.send(b"x")
            with pytest.raises(OSError, match="Bad file descriptor"):
                sock.recv_into(memoryview(bytearray(10)))
            with pytest.raises(BlockingIOError):
                new_peer.recv(1)
        finally:
            os.close(number)


def test_what_is_no_memory_for_bytes_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    sock = prompt_io.prompt(pair[0])
    with pytest.raises(TypeError):
        sock.send("text")
    with pytest.raises(BufferError):
        sock.recv_into(memoryview(b"read-only"))


def _write(there: socket.socket) -> None:
    there.sendall(b"x")


def _end_writing(there: socket.socket) -> None:
    there.shutdown(socket.SHUT_WR)


def _close(there: socket.socket) -> None:
    there.close()


@pytest.mark.parametrize("happens", [None, _write, _end_writing, _close])
@pytest.mark.parametrize("wanted", [selectors.EVENT_READ, selectors.EVENT_WRITE, 3])
def test_a_lent_loop_sees_the_events_that_a_selector_sees(
    pair: tuple[socket.socket, socket.socket], happens: object, wanted: int
) -> None:
    here, there = pair
    if callable(happens):
        happens(there)
    loop = LentLoop()
    with selectors.DefaultSelector() as plain:
        plain.register(here, wanted)
        expected = [events for _, events in plain.select(0)]
        lent = loop._selector
        lent.register(here, wanted)
        assert [events for key, events in lent.select(0) if key.fileobj is here] == expected
        assert [events for key, events in lent.look() if key.fileobj is here] == expected
        if expected:
            assert [events for key, events in lent.select(None) if key.fileobj is here] == expected
        else:
            assert lent.select(0.001) == []
    loop.close()


def test_a_wait_for_events_ends_when_one_comes_from_another_thread(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    assert prompt_io.ready_within is not None
    with selectors.EpollSelector() as selector:
        selector.register(here, selectors.EVENT_READ)
        assert prompt_io.ready_within(selector.fileno(), 0.001) == []
        writer = threading.Thread(target=_write, args=(there,))
        writer.start()
        # For ever, if the other thread did not get the interpreter meanwhile.
        found = prompt_io.ready_within(selector.fileno(), None)
        writer.join()
        assert [descriptor for descriptor, _ in found] == [here.fileno()]


def test_a_wait_for_events_lets_signals_be_handled(pair: tuple[socket.socket, socket.socket]) -> None:
    here, _ = pair
    assert prompt_io.ready_within is not None
    came: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: came.append(number))
    try:
        with selectors.EpollSelector() as selector:
            selector.register(here, selectors.EVENT_READ)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            while not came:
                assert prompt_io.ready_within(selector.fileno(), None) == []
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_wait_for_events_of_what_is_no_epoll_says_so() -> None:
    assert prompt_io.ready_within is not None
    with pytest.raises(OSError, match="Bad file descriptor"):
        prompt_io.ready_within(-1, 1.0)


def test_threads_that_ask_and_answer_at_once_hear_each_other() -> None:
    """Nobody waits with the interpreter in hand for what only another thread can do."""
    here, there = socket.socketpair()
    here.setblocking(False)
    there.setblocking(False)
    turns = 2000

    def talk(sock: socket.socket, begins: bool) -> None:
        prompt, room = prompt_io.prompt(sock), memoryview(bytearray(10))
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            if begins:
                prompt.send(b"x")
            for _ in range(turns):
                assert selector.select(20.0)
                assert prompt.recv_into(room) == 1
                prompt.send(b"x")

    with here, there:
        other = threading.Thread(target=talk, args=(there, False))
        other.start()
        talk(here, True)
        other.join(60)
        assert not other.is_alive()
