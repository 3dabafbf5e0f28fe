"""The threads behind the executor."""

import asyncio
import os
import sys
import threading

import pytest

from ottla.runtime.real import ThreadExecutor


def niceness_of_this_thread() -> tuple[int, int]:
    return threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives threads a priority of their own")
@pytest.mark.parametrize("niceness", [7, 0])
def test_a_nice_executor_steps_back_and_nobody_else_does(niceness: int) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    executor = ThreadExecutor(threads=1, niceness=niceness)

    async def ask() -> tuple[int, int]:
        return await executor.run(niceness_of_this_thread)

    thread, found = asyncio.run(ask())
    executor.shutdown()
    assert thread != threading.get_native_id()
    assert found == max(niceness, before)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
