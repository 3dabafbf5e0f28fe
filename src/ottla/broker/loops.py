"""Which event loop the broker runs on."""

import asyncio
from collections.abc import Coroutine
from typing import Any


def run_on_best_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end on uvloop, or on asyncio's own loop where uvloop is not installed.

    With the broker's own sockets the loop only waits and calls back. Four alternating comparisons on a noisy
    machine did not tell the two apart; uvloop is taken because it does less for each turn.
    """
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)
