"""What tests of threads and signals share."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_handlers() -> Iterator[None]:
    """A main thread as most programs have it: nothing of Python runs in it when a signal comes."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
