"""What ends a run from outside."""

from __future__ import annotations

import os
import signal

import pytest

from ottla.pipelines.frame.order import stopped_by_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_ends_in_good_order_by_a_signal_and_with_its_terminal(number: signal.Signals) -> None:
    """A terminal that is closed sends SIGHUP: the broker of the demo has a session of its own, and would stay."""
    before = signal.getsignal(number)
    with stopped_by_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.is_set()
    assert signal.getsignal(number) is before
