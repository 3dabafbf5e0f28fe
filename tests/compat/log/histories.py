"""Transactions of three producers, step by step, for two logs that are to take the same steps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.unit.log.compacting import keyed_batch
from tests.unit.log.support import append

from ottla.log.log import Log
from ottla.log.own_batch import own_batch
from ottla.protocol.errors import KafkaError
from ottla.records import Codec, ControlType, EndTransactionMarker, build_end_transaction, inspect_batches

PRODUCERS = (5, 6, 7)
# Its markers are those of the second version of the protocol.
BUMPING = PRODUCERS[0]
LEADER_EPOCH, COORDINATOR_EPOCH = 1, 3


@dataclass
class Step:
    """A batch of a producer, or a marker with the version of the protocol that it is of."""

    batch: bytes
    version: int | None = None


class History:
    """Goes on from what a log knows of the producers. With `mistakes`, some steps are to be refused."""

    def __init__(self, log: Log, seed: int, codecs: list[Codec], now_ms: int, *, mistakes: bool = False) -> None:
        producers = log.producer_state.producers
        self._dice = random.Random(seed)
        self._codecs = codecs
        self._now_ms = now_ms
        self._mistakes = mistakes
        self._epochs = {name: producers[name].epoch if name in producers else 0 for name in PRODUCERS}
        self._sequences = {name: producers[name].last_sequence + 1 if name in producers else 0 for name in PRODUCERS}
        self._open: set[int] = set()

    def steps(self) -> Iterator[Step]:
        dice = self._dice
        for _ in range(dice.randrange(50, 80)):
            self._now_ms += dice.randrange(500)
            producer_id = dice.choice((-1, *PRODUCERS))
            if producer_id in self._open and dice.random() < 0.6:
                yield self._marker(producer_id)
                if self._mistakes and dice.random() < 0.3:
                    yield self._last_marker
            else:
                yield self._batch(producer_id)

    def ending(self) -> Iterator[Step]:
        """The markers that are missing."""
        for producer_id in sorted(self._open):
            yield self._marker(producer_id)

    def _batch(self, producer_id: int) -> Step:
        dice = self._dice
        pairs = [
            (b"key %d" % dice.randrange(25), None if dice.random() < 0.2 else dice.randbytes(dice.randrange(50)))
            for _ in range(dice.randrange(1, 4))
        ]
        codec = dice.choice(self._codecs)
        if producer_id < 0:
            return Step(bytes(keyed_batch(pairs, self._now_ms, codec)))
        sequence = self._sequences[producer_id] + (dice.choice((0, 0, 1)) if self._mistakes else 0)
        epoch = self._epochs[producer_id]
        self._sequences[producer_id] = sequence + len(pairs)
        self._open.add(producer_id)
        batch = keyed_batch(pairs, self._now_ms, codec, producer_id, sequence, transactional=True, epoch=epoch)
        return Step(bytes(batch))

    def _marker(self, producer_id: int) -> Step:
        dice = self._dice
        self._open.discard(producer_id)
        if producer_id == BUMPING:
            self._epochs[producer_id] += 1
            self._sequences[producer_id] = 0
        epoch, coordinator_epoch = self._epochs[producer_id], COORDINATOR_EPOCH
        if self._mistakes and dice.random() < 0.3:
            epoch = max(epoch - dice.randrange(2), 0)
            coordinator_epoch += dice.choice((-1, 0, 1))
        marker = EndTransactionMarker(dice.choice(list(ControlType)), coordinator_epoch)
        batch = build_end_transaction(marker, producer_id=producer_id, producer_epoch=epoch, timestamp=self._now_ms)
        self._last_marker = Step(batch, 2 if producer_id == BUMPING else 0)
        return self._last_marker


async def take(log: Log, step: Step) -> str:
    """What becomes of a step in our log: an offset, or the name of an error."""
    records = memoryview(bytearray(step.batch))
    (header,) = headers = inspect_batches(records)
    try:
        if step.version is None:
            info = await append(log, records, leader_epoch=LEADER_EPOCH, now_ms=header.max_timestamp)
        else:
            while log.must_roll(len(records), header.max_timestamp):
                await log.roll()
            info = log.append(records, headers, LEADER_EPOCH, own_batch(records, header, step.version))
    except KafkaError as error:
        return error.code.name
    return str(info.first_offset)
