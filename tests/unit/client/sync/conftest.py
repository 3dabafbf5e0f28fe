"""What tests of threads and signals share."""

import signal
from collections.abc import Iterator

import pytest

from ottla.client.sync.loop_thread import LoopThread


@pytest.fixture
def no_handlers() -> Iterator[None]:
    """A main thread as most programs have it: nothing of Python runs in it when a signal comes."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(params=["in its own thread", "in the caller's"])
def thread(request: pytest.FixtureRequest, no_handlers: None) -> LoopThread:
    return LoopThread("producer", drives_here=request.param == "in the caller's")
