import asyncio

import pytest

from ottla.broker.producer_ids import ProducerIds


class Blocks:
    """Hands out blocks of three ids; a block takes a turn of the loop, and may fail."""

    def __init__(self) -> None:
        self.given = 0
        self.fails = False

    async def next_block(self) -> tuple[int, int]:
        await asyncio.sleep(0)
        if self.fails:
            raise OSError("the store is away")
        self.given += 1
        return (self.given * 1000, 3)


def test_ids_of_a_block_are_used_up_before_the_next_is_asked_for() -> None:
    async def scenario() -> list[int]:
        producer_ids = ProducerIds(Blocks().next_block)
        return [await producer_ids.next() for _ in range(7)]

    assert asyncio.run(scenario()) == [1000, 1001, 1002, 2000, 2001, 2002, 3000]


def test_all_who_ask_at_once_get_ids_of_their_own_and_no_block_is_wasted() -> None:
    async def scenario() -> tuple[list[int], int]:
        blocks = Blocks()
        producer_ids = ProducerIds(blocks.next_block)
        return await asyncio.gather(*(producer_ids.next() for _ in range(50))), blocks.given

    given, blocks = asyncio.run(scenario())
    assert len(set(given)) == 50
    assert blocks == 17


def test_a_block_that_cannot_be_had_is_asked_for_again() -> None:
    async def scenario() -> int:
        blocks = Blocks()
        blocks.fails = True
        producer_ids = ProducerIds(blocks.next_block)
        with pytest.raises(OSError, match="away"):
            await producer_ids.next()
        blocks.fails = False
        return await producer_ids.next()

    assert asyncio.run(scenario()) == 1000
