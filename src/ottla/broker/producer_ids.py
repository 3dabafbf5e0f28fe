"""Producer ids, handed out from blocks.

A block belongs to this broker alone from the moment the controller has written it down, before any of its ids is
used: after a crash the rest of a block is lost, and none of it is ever given out twice.
"""

import asyncio
from collections.abc import Awaitable, Callable

Block = tuple[int, int]


class ProducerIds:
    """`next_block` gives the first id of a new block and how many there are."""

    def __init__(self, next_block: Callable[[], Awaitable[Block]]) -> None:
        self._next_block = next_block
        self._next_id = 0
        self._left = 0
        self._refill = asyncio.Lock()

    async def next(self) -> int:
        while not self._left:
            async with self._refill:
                if not self._left:
                    self._next_id, self._left = await self._next_block()
        producer_id = self._next_id
        self._next_id += 1
        self._left -= 1
        return producer_id
