"""Whoever waits for something that the loop brings, and looks for it by itself."""

import os
import signal
import threading
from collections.abc import Callable

import pytest
from tests.waiting import PATIENCE_SECONDS, tries

from ottla.client.errors import ClientClosed
from ottla.client.sync.loop_thread import LoopThread


class Letterbox:
    """Something to look into, that can be watched."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.look_again: Callable[[], None] | None = None
        self.is_open = True
        self.is_watched = threading.Event()

    def watch(self, look_again: Callable[[], None], /) -> bool:
        if self.is_open:
            self.look_again = look_again
            self.is_watched.set()
        return self.is_open

    def unwatch(self) -> None:
        self.look_again = None

    def look(self) -> str | None:
        return self.letters.pop() if self.letters else None

    def deliver(self, letter: str) -> None:
        self.letters.append(letter)
        if self.look_again is not None:
            self.look_again()


@pytest.fixture
def thread(no_handlers: None) -> LoopThread:
    return LoopThread("consumer", drives_here=True)


def deliver_when_watched(thread: LoopThread, box: Letterbox, letter: str) -> threading.Thread:
    def deliver() -> None:
        assert box.is_watched.wait(PATIENCE_SECONDS)
        thread.tell(box.deliver, letter)

    postman = threading.Thread(target=deliver)
    postman.start()
    return postman


def found(thread: LoopThread, box: Letterbox, timeout: float | None) -> str | None:
    """A look may end early with nothing: after a second, and where the loop's own thread is slow to hand it over."""
    for _ in tries():
        letter = thread.look_out(box, box.look, timeout)
        if letter is not None:
            return letter
    return None


def look_out_for_ever(thread: LoopThread, box: Letterbox) -> None:
    while True:
        thread.look_out(box, box.look, None)


def test_what_is_there_is_found_at_once(thread: LoopThread) -> None:
    box = Letterbox()
    box.deliver("a")
    assert found(thread, box, None) == "a"
    assert not box.is_watched.is_set()
    thread.close()


def test_what_the_loop_brings_is_found_when_it_comes(thread: LoopThread) -> None:
    box = Letterbox()
    for letter in ("a", "b"):
        box.is_watched.clear()
        postman = deliver_when_watched(thread, box, letter)
        assert found(thread, box, 60.0) == letter
        assert box.look_again is None
        postman.join()
    thread.close()


def test_nothing_is_found_after_a_while_and_by_who_cannot_wait_that_long(thread: LoopThread) -> None:
    box = Letterbox()
    assert thread.look_out(box, box.look, 0.5) is None
    assert not box.is_watched.is_set()
    for _ in tries():
        assert thread.look_out(box, box.look, None) is None
        if box.is_watched.is_set():
            break
    assert box.is_watched.is_set()
    assert box.look_again is None
    thread.close()


def test_where_waiting_is_not_enough_nobody_waits(thread: LoopThread) -> None:
    box = Letterbox()
    box.is_open = False
    assert thread.look_out(box, box.look, None) is None
    thread.close()


def test_ctrl_c_ends_it(thread: LoopThread) -> None:
    box = Letterbox()

    def interrupt() -> None:
        assert box.is_watched.wait(PATIENCE_SECONDS)
        os.kill(os.getpid(), signal.SIGINT)

    hand = threading.Thread(target=interrupt)
    hand.start()
    with pytest.raises(KeyboardInterrupt):
        look_out_for_ever(thread, box)
    hand.join()
    assert box.look_again is None
    box.deliver("a")
    assert found(thread, box, None) == "a"
    thread.close()


def test_a_client_that_is_closed_meanwhile_is_not_waited_for(thread: LoopThread) -> None:
    box = Letterbox()

    def close() -> None:
        assert box.is_watched.wait(PATIENCE_SECONDS)
        thread.close()

    hand = threading.Thread(target=close)
    hand.start()
    with pytest.raises(ClientClosed):
        look_out_for_ever(thread, box)
    hand.join()
