"""Transactions: records and offsets that become visible together, or not at all (KIP-98, KIP-360, KIP-890).

    uninitialized -> ready -> in transaction -> committing -> ready
                       ^          |    |             |
                       |          |    v             v
                       +-- aborting <- must abort <--+
    in transaction -> staging -> staged: all of it is written, and another process may end it; this one still may, too
    from anywhere -> dead: another producer has taken over, or the broker does not allow it

| `transaction.version` | partitions join             | offsets join            | after the end                  |
|-----------------------|-----------------------------|-------------------------|--------------------------------|
| up to 1               | AddPartitionsToTxn, before  | AddOffsetsToTxn, before | the same epoch; InitProducerId |
|                       | the first batch             | TxnOffsetCommit         | where it must rise             |
| 2                     | with the first batch        | with TxnOffsetCommit,   | a new epoch in EndTxn's        |
|                       | (Produce from v12)          | from v5                 | answer, sequences from 0       |

An abort ends whatever may be open at the broker, also where the answer that would have told so never came: what is left
open would be committed with the next transaction.

Everything runs in the producer's loop.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any, Protocol

from ottla.client.config import ProducerConfig
from ottla.client.errors import BrokerError, MustAbort, OttlaError, TransactionAborted, TransactionError, Unfinished
from ottla.client.network import Network
from ottla.client.producer.partitions import PartitionQueue
from ottla.client.producer.sequences import Sequences
from ottla.client.producer.transaction_requests import (
    DEADLY,
    GroupIdentity,
    GroupOnly,
    TransactionRequests,
)
from ottla.client.types import OffsetAndMetadata, StagedTransaction, TopicPartition
from ottla.protocol.errors import ErrorCode

_LAST_PRODUCE_OF_VERSION_1 = 11
_DEADLY_FOR_BATCHES = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
}
# What the end of a transaction is refused with where none was open.
_NOTHING_OPEN = {
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int] | Mapping[tuple[str, int], OffsetAndMetadata | int]


class State(Enum):
    UNINITIALIZED = "uninitialized"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    STAGING = "staging"
    STAGED = "in a transaction that was handed over"
    MUST_ABORT = "in a transaction that must be aborted"
    ABORTING = "aborting"
    DEAD = "unusable"


_SENDING = (State.IN_TRANSACTION, State.COMMITTING, State.STAGING)


class Surroundings(Protocol):
    """What a transaction needs of the producer."""

    async def flush(self, timeout: float | None = None) -> None: ...

    async def drop_all(self, error: OttlaError) -> bool:
        """Give up what was not sent and wait for what was; whether something that may be in the log was given up."""
        ...

    def allow_appending(self, allowed: bool) -> None: ...

    def turn_soon(self) -> None: ...

    def fail(self, error: OttlaError) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]": ...


class Transactions:
    def __init__(
        self, config: ProducerConfig, network: Network, sequences: Sequences, surroundings: Surroundings
    ) -> None:
        assert config.transactional_id is not None
        self._requests = TransactionRequests(config.transactional_id, config.transaction_timeout_ms, network)
        self._network = network
        self._sequences = sequences
        self._surroundings = surroundings
        self._patience = config.max_block_ms / 1000
        self.state = State.UNINITIALIZED
        self._cause: OttlaError | None = None
        self._is_version_2 = False
        # The broker knows of the transaction for sure, or it was asked for something that lets it know.
        self._is_started = False
        self._may_be_started = False
        self._is_bump_needed = False
        self._members: list[PartitionQueue] = []
        self._joining: dict[PartitionQueue, None] = {}
        self._join_task: asyncio.Task[None] | None = None

    @property
    def produce_version(self) -> int | None:
        """The newest Produce that the transaction allows; from v12 on, it adds partitions by itself."""
        return None if self._is_version_2 else _LAST_PRODUCE_OF_VERSION_1

    @property
    def must_abort(self) -> bool:
        return self.state is State.MUST_ABORT

    # What the sender asks.

    def may_send(self, queue: PartitionQueue) -> bool:
        """Whether batches of a partition may go: it is part of the transaction, or becomes so by being sent to."""
        if self.state not in _SENDING:
            return False
        if queue.is_in_transaction:
            return True
        if self._is_version_2:
            self._joined([queue])
            return True
        self._joining[queue] = None
        if self._join_task is None or self._join_task.done():
            self._join_task = self._surroundings.spawn(self._join())
        return False

    def batch_failed(self, error: OttlaError) -> None:
        if self.state in (State.ABORTING, State.DEAD):
            return
        if isinstance(error, BrokerError) and error.code in _DEADLY_FOR_BATCHES:
            self._die(error)
            return
        self._is_bump_needed = True
        self._must_abort(error)

    def _joined(self, queues: Iterable[PartitionQueue]) -> None:
        self._is_started = True
        for queue in queues:
            queue.is_in_transaction = True
            self._members.append(queue)

    async def _join(self) -> None:
        """Add the partitions that have records to the transaction."""
        while self._joining and self.state in _SENDING:
            queues = list(self._joining)
            self._may_be_started = True
            try:
                await self._requests.add_partitions(self._sequences.identity, queues)
            except OttlaError as error:
                self._failed(error)
                return
            self._joined(queues)
            for queue in queues:
                self._joining.pop(queue, None)
        self._surroundings.turn_soon()

    # States.

    def check_may_append(self) -> None:
        """Raise what tells the user why no record can be sent now."""
        if self.state is State.UNINITIALIZED:
            raise TransactionError("call init_transactions() once, then begin_transaction(), before sending")
        if self.state is State.READY:
            raise TransactionError("begin_transaction() first: this producer has a transactional.id")
        self._raise_if_broken()
        if self.state is not State.IN_TRANSACTION:
            raise TransactionError(f"the producer is {self.state.value}: wait for that to end")

    def _raise_if_broken(self) -> None:
        if self.state is State.DEAD and self._cause is not None:
            raise self._cause.with_traceback(None)
        if self.state is State.MUST_ABORT:
            raise MustAbort(
                f"abort_transaction(), then begin it again; what went wrong: {self._cause}"
            ) from self._cause

    def _enter(self, state: State) -> None:
        self.state = state
        self._surroundings.allow_appending(state is State.IN_TRANSACTION)

    def _must_abort(self, cause: OttlaError) -> None:
        if self.state in (*_SENDING, State.READY, State.UNINITIALIZED):
            self._cause = cause
            self._enter(State.MUST_ABORT)
            # A turn drops what was not sent: whoever waits for it is told.
            self._surroundings.turn_soon()

    def _die(self, cause: OttlaError) -> None:
        if self.state is not State.DEAD:
            self._cause = cause
            self._enter(State.DEAD)
            self._surroundings.fail(cause)

    def _failed(self, error: OttlaError) -> None:
        """An error of a request of the transaction: an abort heals it, or nothing does."""
        if isinstance(error, BrokerError) and error.code in DEADLY:
            self._die(error)
            return
        if isinstance(error, BrokerError) and error.code in (
            ErrorCode.UNKNOWN_PRODUCER_ID,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ):
            self._is_bump_needed = True
        self._must_abort(error)

    def _expect(self, *states: State, to: str) -> None:
        if self.state is State.DEAD or (self.state is State.MUST_ABORT and State.MUST_ABORT not in states):
            self._raise_if_broken()
        if self.state not in states:
            raise TransactionError(f"cannot {to}: the producer is {self.state.value}, not {states[0].value}")

    # What users call.

    async def initialize(self, timeout: float | None = None) -> None:
        """Take the transactional id over: fence others that have it, and end what they left open."""
        self._expect(State.UNINITIALIZED, State.READY, State.STAGED, to="init_transactions")
        try:
            async with asyncio.timeout(self._patience if timeout is None else timeout):
                identity = await self._requests.initialize(None)
        except TimeoutError:
            raise Unfinished("no coordinator gave a producer id in time: call init_transactions() again") from None
        except OttlaError as error:
            if isinstance(error, BrokerError):
                self._die(error)
            raise
        self._sequences.begin(identity)
        self._leave_partitions()
        self._enter(State.READY)

    def begin(self) -> None:
        self._expect(State.READY, to="begin_transaction")
        self._is_version_2 = self._network.feature_level("transaction.version") >= 2
        self._is_started = self._may_be_started = self._is_bump_needed = False
        self._cause = None
        self._enter(State.IN_TRANSACTION)

    async def send_offsets(self, offsets: Offsets, group: "GroupIdentity | str", timeout: float | None = None) -> None:
        """Commit a group's offsets with the transaction."""
        self._expect(State.IN_TRANSACTION, to="send_offsets_to_transaction")
        who = GroupOnly(group) if isinstance(group, str) else group
        unknown = Unfinished("the offsets were not taken in time: abort the transaction")
        try:
            async with asyncio.timeout(self._patience if timeout is None else timeout):
                await self._commit_offsets(offsets, who)
        except TimeoutError:
            self._lost_sight(unknown)
            raise unknown from None
        except OttlaError as error:
            self._failed(error)
            raise
        except BaseException:
            self._lost_sight(unknown)
            raise

    async def _commit_offsets(self, offsets: Offsets, who: GroupIdentity) -> None:
        identity = self._sequences.identity
        self._may_be_started = True
        if not self._is_version_2:
            await self._requests.add_offsets(identity, who)
            self._is_started = True
        await self._requests.commit_offsets(identity, offsets, who, self._is_version_2)
        self._is_started = True

    def _lost_sight(self, error: OttlaError) -> None:
        """A request may still arrive: it must be too late for the next transaction, which takes a new epoch."""
        self._is_bump_needed = True
        self._must_abort(error)

    async def commit(self, timeout: float | None = None) -> None:
        """Wait until every record is acknowledged, and make all of it visible."""
        self._expect(State.IN_TRANSACTION, State.COMMITTING, State.STAGED, to="commit_transaction")
        self._enter(State.COMMITTING)
        try:
            async with asyncio.timeout(self._patience if timeout is None else timeout):
                await self._surroundings.flush()
                self._raise_if_broken()
                await self._end(is_commit=True)
        except TimeoutError:
            raise Unfinished("the transaction was not committed in time: call commit_transaction() again") from None

    async def abort(self, timeout: float | None = None) -> None:
        """Drop what was not sent, and make the rest invisible for those who read committed records only."""
        if self.state is State.DEAD:
            self._raise_if_broken()
        self._expect(State.IN_TRANSACTION, State.MUST_ABORT, State.ABORTING, State.STAGED, to="abort_transaction")
        self._enter(State.ABORTING)
        try:
            async with asyncio.timeout(self._patience if timeout is None else timeout):
                dropped = TransactionAborted("the transaction was aborted before the record was written")
                self._is_bump_needed |= await self._surroundings.drop_all(dropped)
                await self._end(is_commit=False)
        except TimeoutError:
            raise Unfinished("the transaction was not aborted in time: call abort_transaction() again") from None

    async def stage(self, timeout: float | None = None) -> StagedTransaction | None:
        """Wait until every record is acknowledged, and leave the transaction open for whoever gets the result.

        None, and nothing is open, where no record was sent. Closing the producer does not end what is staged.
        """
        self._expect(State.IN_TRANSACTION, State.STAGING, to="stage_transaction")
        self._enter(State.STAGING)
        try:
            async with asyncio.timeout(self._patience if timeout is None else timeout):
                await self._surroundings.flush()
                await self._joins_done()
                self._raise_if_broken()
        except TimeoutError:
            raise Unfinished("not all records were written in time: call stage_transaction() again") from None
        if not self._is_started:
            self._enter(State.READY)
            return None
        self._enter(State.STAGED)
        return StagedTransaction(self._requests.transactional_id, *self._sequences.identity)

    async def _joins_done(self) -> None:
        if self._join_task is not None and not self._join_task.done():
            await asyncio.wait([self._join_task])

    async def _end(self, *, is_commit: bool) -> None:
        await self._joins_done()
        if is_commit:
            self._raise_if_broken()
        try:
            if self._is_started or self._may_be_started:
                await self._end_at_broker(is_commit)
            if self._is_bump_needed or not self._sequences.is_settled:
                self._sequences.begin(await self._requests.initialize(self._sequences.identity))
        except OttlaError as error:
            self._failed(error)
            raise
        self._leave_partitions()
        self._enter(State.READY)

    async def _end_at_broker(self, is_commit: bool) -> None:
        try:
            identity = await self._requests.end(self._sequences.identity, is_commit, self._is_version_2)
        except BrokerError as error:
            if is_commit or self._is_started or error.code not in _NOTHING_OPEN:
                raise
            self._is_bump_needed = True
            return
        if identity.is_valid:
            self._sequences.begin(identity)
            self._is_bump_needed = False

    def _leave_partitions(self) -> None:
        for queue in self._members:
            queue.is_in_transaction = False
        self._members.clear()
        self._joining.clear()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Begin; at the end commit, or abort when something was raised."""
        self.begin()
        try:
            yield
            await self.commit()
        except BaseException:
            if self.state in (State.IN_TRANSACTION, State.MUST_ABORT):
                await self.abort()
            raise

    def is_open(self) -> bool:
        return self.state in (State.IN_TRANSACTION, State.MUST_ABORT)
