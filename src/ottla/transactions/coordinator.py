"""The transaction coordinator of a broker: all ids whose partition of `__transaction_state` it leads.

Requests are answered with promises: kept when what was decided is committed, rejected with the error that Kafka has.
Two rounds run beside them: transactions that are open beyond their timeout are aborted, and ids that nobody has used
for long are forgotten.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ottla.cluster.image import ClusterImage
from ottla.cluster.requests import NewTopic
from ottla.cluster.topic_names import TRANSACTION_TOPIC
from ottla.ledger import Decision, Ledger, LedgerTopic, replication_factor
from ottla.ledger.ledger import State
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.manager import ReplicaManager
from ottla.runtime import Executor
from ottla.runtime.promise import Promise, rejected
from ottla.transactions.ending import EndRequest
from ottla.transactions.entries import TRANSACTION_RECORD_TYPES
from ottla.transactions.listing import Filters
from ottla.transactions.machine import NeedsProducerId, Producer, TransactionContext, TransactionMachine
from ottla.transactions.transaction import EPOCH_BUMP_VERSION, Status, TopicPartition, Transaction

logger = logging.getLogger(__name__)

IDS_IN_A_TURN = 500
MATCHES_IN_A_TURN = 50
TOMBSTONE_BYTES = 1 << 16

Answer = TypeVar("Answer")


class TransactionCoordinator:
    """See the module. `next_producer_id` gives an id that nobody had before."""

    def __init__(
        self,
        context: TransactionContext,
        replicas: ReplicaManager,
        executor: Executor,
        next_producer_id: Callable[[], Awaitable[int]],
    ) -> None:
        self._context = context
        self._next_producer_id = next_producer_id
        self._taking: set[asyncio.Task[None]] = set()
        self.failed_verifications = 0
        self.topic: LedgerTopic[TransactionMachine] = LedgerTopic(
            TRANSACTION_TOPIC,
            TRANSACTION_RECORD_TYPES,
            lambda index, ledger: TransactionMachine(context, ledger),
            replicas,
            context.clock,
            executor,
        )

    # Following the cluster

    def follow(self, image: ClusterImage) -> None:
        self.topic.follow(image)

    def stop(self) -> None:
        self.topic.stop()
        for task in list(self._taking):
            task.cancel()

    def new_topic(self) -> NewTopic:
        """The topic, as it is created when a coordinator is first asked for."""
        settings = self._context.settings()
        return NewTopic(
            TRANSACTION_TOPIC,
            num_partitions=settings.transaction_state_log_num_partitions,
            replication_factor=replication_factor(
                self._context.image(), settings.transaction_state_log_replication_factor
            ),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings.transaction_state_log_min_isr),
                "segment.bytes": str(settings.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )

    # What producers ask

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Promise[Producer]:
        """A producer id and epoch for who begins; whoever had the id before is fenced."""
        if not transactional_id:
            return rejected(_no_id())
        if not 0 < timeout_ms <= self._context.settings().transaction_max_timeout_ms:
            return rejected(
                KafkaError(
                    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                    f"a timeout of 1 to {self._context.settings().transaction_max_timeout_ms} ms "
                    f"(transaction.max.timeout.ms) expected, {timeout_ms} came",
                )
            )
        answer: Promise[Producer] = Promise()

        def initialized(promise: Promise[Producer | None]) -> None:
            error = promise.exception()
            producer = None if error is not None else promise.result()
            if error is not None:
                answer.reject(error)
            elif producer is None:
                text = f"the transaction that {transactional_id} had open is being aborted; try again"
                answer.reject(KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, text))
            else:
                answer.resolve(producer)

        self._decide(
            transactional_id,
            lambda machine, offered: machine.initialize(transactional_id, timeout_ms, expected, offered),
        ).add_done_callback(initialized)
        return answer

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        client_version: int,
    ) -> Promise[None]:
        """Make partitions, which exist, part of the producer's transaction."""
        if not transactional_id:
            return rejected(_no_id())
        added = frozenset(partitions)
        return self._decide(
            transactional_id,
            lambda machine, _: machine.add_partitions(transactional_id, producer, added, client_version),
        )

    def end(self, transactional_id: str, request: EndRequest) -> Promise[Producer]:
        """Commit or abort the producer's transaction: the decision is made when the promise is kept, and stands."""
        if not transactional_id:
            return rejected(_no_id())
        return self._decide(transactional_id, lambda machine, offered: machine.end(transactional_id, request, offered))

    def check_partition(self, transactional_id: str, producer: Producer, partition: TopicPartition) -> None:
        """`KafkaError` unless the partition is part of the producer's transaction."""
        if not transactional_id:
            raise _no_id()
        self._ledger_of(transactional_id).machine.verify(transactional_id, producer, partition)

    # What the partitions of a transaction ask

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        adds: bool,
    ) -> Promise[None] | None:
        """Whether a partition may take what a producer writes in its transaction.

        None when it may; a promise when that shows later; `KafkaError`, raised or as the promise's, when it may not.
        With `adds` (transaction version 2) the partition becomes part of the transaction by this. Who comes while the
        producer's last transaction is still ending waits for that, for a moment. The errors are the coordinator's, but
        for a fenced producer, who is told INVALID_PRODUCER_EPOCH wherever it writes records.
        """
        target = TopicPartition(topic, partition)
        producer = (producer_id, producer_epoch)
        try:
            if not adds:
                self.check_partition(transactional_id, producer, target)
                return None
            if not transactional_id:
                raise _no_id()
            machine = self._ledger_of(transactional_id).machine
            transaction = machine.transactions.get(transactional_id)
            if (
                transaction is not None
                and transaction.status is Status.ONGOING
                and transaction.producer == producer
                and target in transaction.partitions
                and transactional_id not in machine.pending
            ):
                return None
        except KafkaError as error:
            self.failed_verifications += 1
            raise _for_writers(error) from error
        return self._add_in_turn(transactional_id, producer, target)

    def _add_in_turn(self, transactional_id: str, producer: Producer, partition: TopicPartition) -> Promise[None]:
        """Add a partition; while something else is decided about the id, wait for that, for a moment."""
        answer: Promise[None] = Promise()
        machine = self._ledger_of(transactional_id).machine
        timer: asyncio.TimerHandle | None = None
        is_late = False

        def attempt() -> None:
            nonlocal timer
            if machine.is_pending(transactional_id) and not machine.is_gone and not is_late:
                machine.when_settled(transactional_id, attempt)
                if timer is None:
                    wait_ms = self._context.settings().verification_wait_ms
                    timer = asyncio.get_running_loop().call_later(wait_ms / 1000, give_up)
                return
            self.add_partitions(transactional_id, producer, [partition], EPOCH_BUMP_VERSION).add_done_callback(added)

        def give_up() -> None:
            nonlocal is_late
            is_late = True
            if machine.stop_waiting(transactional_id, attempt):
                attempt()

        def added(promise: Promise[None]) -> None:
            error = promise.exception()
            if isinstance(error, KafkaError) and error.code is ErrorCode.CONCURRENT_TRANSACTIONS and not is_late:
                attempt()
                return
            if timer is not None:
                timer.cancel()
            if error is None:
                answer.resolve(None)
            else:
                self.failed_verifications += 1
                answer.reject(_for_writers(error))

        attempt()
        return answer

    # What tools ask

    def describe(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise _no_id()
        found = self._ledger_of(transactional_id).machine.transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"there is no {transactional_id}")
        return found

    async def find(self, filters: Filters) -> list[Transaction]:
        """All that pass the filters, in the order of their partitions."""
        ledgers = list(self.topic)
        for ledger in ledgers:
            if ledger.state is State.LOADING:
                ledger.check_ready()
        found: list[Transaction] = []
        for _ in self._look(ledgers, filters, found):
            await asyncio.sleep(0)
        return found

    def _look(
        self, ledgers: Sequence[Ledger[TransactionMachine]], filters: Filters, found: list[Transaction]
    ) -> Iterator[None]:
        """Find them, with a pause whenever others should have their turn."""
        now_ms = self._context.clock.now_ms()
        in_a_turn = IDS_IN_A_TURN if filters.pattern is None else MATCHES_IN_A_TURN
        for ledger in ledgers:
            transactions = ledger.machine.transactions
            for number, name in enumerate(list(transactions), 1):
                transaction = transactions.get(name)
                if transaction is not None and (yield from filters.admit(transaction, now_ms)):
                    found.append(transaction)
                if number % in_a_turn == 0:
                    yield

    # Rounds

    async def run(self) -> None:
        """Abort what timed out and forget what expired, until cancelled."""
        await asyncio.gather(self._run_timeouts(), self._run_expiration())

    async def _run_timeouts(self) -> None:
        while True:
            settings = self._context.settings()
            await asyncio.sleep(settings.transaction_abort_timed_out_transaction_cleanup_interval_ms / 1000)
            await self.abort_timed_out()

    async def _run_expiration(self) -> None:
        while True:
            settings = self._context.settings()
            await asyncio.sleep(settings.transaction_remove_expired_transaction_cleanup_interval_ms / 1000)
            await self.expire()

    async def abort_timed_out(self) -> None:
        """Abort every transaction that is open beyond its timeout; returns when all of that has begun."""
        now_ms = self._context.clock.now_ms()
        for ledger in self._ready():
            machine = ledger.machine
            for number, name in enumerate(list(machine.ongoing)):
                if number % IDS_IN_A_TURN == IDS_IN_A_TURN - 1:
                    await asyncio.sleep(0)
                transaction = machine.transactions.get(name)
                if transaction is not None and transaction.has_timed_out(now_ms):
                    self._decide(name, _abort(name)).add_done_callback(_report)

    async def expire(self) -> None:
        """Forget every id that has expired; returns when all of that has begun."""
        now_ms, expiration_ms = self._context.clock.now_ms(), self._context.settings().transactional_id_expiration_ms
        for ledger in self._ready():
            machine = ledger.machine
            expired: list[str] = []
            bytes_in_batch = 0
            for number, (name, transaction) in enumerate(list(machine.transactions.items())):
                if number % IDS_IN_A_TURN == IDS_IN_A_TURN - 1:
                    await asyncio.sleep(0)
                if not transaction.has_expired(now_ms, expiration_ms):
                    continue
                if bytes_in_batch + len(name) > TOMBSTONE_BYTES:
                    ledger.write(_forget(machine, expired)).add_done_callback(_report)
                    expired, bytes_in_batch = [], 0
                expired.append(name)
                bytes_in_batch += 4 * len(name) + 16
            if expired:
                ledger.write(_forget(machine, expired)).add_done_callback(_report)

    def _ready(self) -> list[Ledger[TransactionMachine]]:
        return [ledger for ledger in self.topic if ledger.state is State.READY]

    # From a request to its ledger

    def _ledger_of(self, transactional_id: str) -> Ledger[TransactionMachine]:
        if not self.topic.partition_count:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"{TRANSACTION_TOPIC} does not exist yet: look for the coordinator first"
            )
        return self.topic.ledger_of(transactional_id)

    def _decide(
        self, transactional_id: str, decide: Callable[[TransactionMachine, int | None], Decision[Answer]]
    ) -> Promise[Answer]:
        """Decide; where that takes a new producer id, get one and decide again."""
        try:
            ledger = self._ledger_of(transactional_id)
        except KafkaError as error:
            return rejected(error)
        answer: Promise[Answer] = Promise()

        def attempt(offered_id: int | None) -> None:
            ledger.write(lambda: decide(ledger.machine, offered_id)).add_done_callback(decided)

        def decided(promise: Promise[Answer]) -> None:
            error = promise.exception()
            if isinstance(error, NeedsProducerId):
                self._take_producer_id(attempt, answer)
            elif error is not None:
                answer.reject(error)
            else:
                answer.resolve(promise.result())

        attempt(None)
        return answer

    def _take_producer_id(self, then: Callable[[int], None], answer: Promise[Answer]) -> None:
        async def take() -> None:
            try:
                producer_id = await self._next_producer_id()
            except KafkaError as error:
                text = f"no new producer id could be had: {error}"
                answer.reject(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text))
            else:
                then(producer_id)

        task = asyncio.get_running_loop().create_task(take(), name="producer id")
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)


def _no_id() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")


def _for_writers(error: BaseException) -> BaseException:
    if isinstance(error, KafkaError) and error.code is ErrorCode.PRODUCER_FENCED:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    return error


def _abort(name: str) -> Callable[[TransactionMachine, int | None], Decision[None]]:
    return lambda machine, offered_id: machine.abort_timed_out(name, offered_id)


def _forget(machine: TransactionMachine, names: Sequence[str]) -> Callable[[], Decision[None]]:
    return lambda: machine.expire(names)


def _report(promise: Promise[None]) -> None:
    error = promise.exception()
    if error is not None:
        logger.warning("a transactional id could not be tidied up; it will be tried again: %s", error)
