"""Carrying decisions out: from what was decided to what is written, under one controller's term."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ottla.cluster import paths
from ottla.cluster.image import NO_CONTROLLER, ClusterImage
from ottla.cluster.metadata import MetadataCache
from ottla.cluster.requests import Decision
from ottla.coordination.store import (
    MAX_TRANSACTION_BYTES,
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SessionExpired,
    Set,
    Store,
)
from ottla.protocol.errors import ErrorCode, KafkaError

Result = TypeVar("Result")

_ATTEMPTS = 10
_BATCH_OPERATIONS = 1000


class TermOver(Exception):
    """Another controller was elected, or the session expired: nothing more can be written in this term."""


class ControllerTerm:
    """From an election to the next: what was won, and the right to write while it lasts."""

    def __init__(self, store: Store, metadata: MetadataCache, epoch: int, epoch_version: int) -> None:
        self._store = store
        self._metadata = metadata
        self.epoch = epoch
        self._fence = Check(paths.CONTROLLER_EPOCH, epoch_version)

    def is_current(self, image: ClusterImage) -> bool:
        return image.controller_epoch == self.epoch and image.controller_id != NO_CONTROLLER

    async def resign(self) -> None:
        await self._store.transact([self._fence, Delete(paths.CONTROLLER)])

    async def carry_out(self, decide: Callable[[ClusterImage], list[Decision[Result]]]) -> list[Result]:
        """Decide on the newest image and write it, until an attempt meets the store as the image had it.

        Decisions are written in order, several in one transaction, each whole. When an attempt fails halfway, what
        it had written is there: deciding again must see that as done. Once this returns, the image has it all.
        """
        stale: list[str] | None = []
        for _ in range(_ATTEMPTS):
            written: list[str] = []
            try:
                await self._catch_up(stale)
                decisions = decide(self._metadata.image)
                written = [operation.path for decision in decisions for operation in decision.operations]
                for batch in _batches(decisions):
                    await self._write(batch)
                await self._catch_up(written)
                return [decision.result for decision in decisions]
            except (BadVersion, NodeExists, NoNode, NotEmpty):
                stale = written
            except ConnectionLost:
                stale = None
            except SessionExpired as error:
                raise TermOver from error
        message = f"The change met others in the store {_ATTEMPTS} times and was given up; try again."
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)

    async def _catch_up(self, stale: list[str] | None) -> None:
        """Read what is stale in the image; None stands for all of it."""
        if stale is None:
            await self._metadata.reload()
        elif stale:
            await self._metadata.refresh(stale)

    async def _write(self, operations: Sequence[Operation]) -> None:
        try:
            await self._store.transact([self._fence, *operations])
        except (BadVersion, NoNode) as error:
            if error.path == paths.CONTROLLER_EPOCH:
                raise TermOver from error
            raise


def _batches(decisions: Sequence[Decision[Result]]) -> Iterator[list[Operation]]:
    """Operations of several decisions together, as many as fit in a transaction; one decision is never split."""
    batch: list[Operation] = []
    batch_bytes = 0
    for decision in decisions:
        size = sum(_data_bytes(operation) for operation in decision.operations)
        if size > MAX_TRANSACTION_BYTES:
            message = f"The change takes {size} bytes, more than one transaction holds ({MAX_TRANSACTION_BYTES})."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        count = len(batch) + len(decision.operations)
        if batch and (batch_bytes + size > MAX_TRANSACTION_BYTES or count > _BATCH_OPERATIONS):
            yield batch
            batch, batch_bytes = [], 0
        batch.extend(decision.operations)
        batch_bytes += size
    if batch:
        yield batch


def _data_bytes(operation: Operation) -> int:
    return len(operation.data) if isinstance(operation, (Create, Set)) else 0
