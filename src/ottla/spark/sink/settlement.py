"""What the driver does for exactly-once: it decides a batch, ends its transactions, and aborts what is left over.

`exactly_once` tells why it is done in this order.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ottla.client.errors import BrokerError, Fenced, OttlaError
from ottla.client.sync.admin import Admin
from ottla.client.types import StagedTransaction
from ottla.protocol.errors import ErrorCode
from ottla.spark import clients
from ottla.spark.sink.decisions import Decider, Decision, DecisionLog, DecisionState, decider_id
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.rows import HandedOver

logger = logging.getLogger(__name__)

_OPEN = "Ongoing"
_ABORT_ROUNDS = 4
_ABORT_ROUND_SECONDS = 0.75
_NOT_OPEN_ANY_MORE = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class BatchSuperseded(OttlaError):
    """A later batch of the query was decided already."""


class StagedRowsLost(OttlaError):
    """Rows of a batch that is not decided were aborted by the broker: the batch is written anew."""

    is_retriable = True


class DecidedRowsLost(OttlaError):
    """A batch was decided, and a transaction of it can no longer be committed: its rows are not in the topics."""


class Settlement:
    def __init__(self, options: SinkOptions, key: str) -> None:
        self._options = options
        self._key = key
        self._log = DecisionLog(options, key)

    @property
    def _admin(self) -> Admin:
        """The process's; a subclass may have its own."""
        return clients.admin(self._options.connection_settings("driver"))

    def commit(
        self,
        batch_id: int,
        staged: Sequence[StagedTransaction],
        rows: HandedOver | None = None,
        *,
        family: str,
        is_repeated: bool = False,
    ) -> None:
        """Make a batch count as a whole. `family` is how all transactional ids of this run of the query begin; `rows`
        are those that tasks handed over.

        1. Shut out other drivers of the query, and settle the decision that one may have had under way. A driver that
           decided the batch before has done so already, and is shut out itself where another one came since.
        2. See whether the batch was decided before, and which transactions of the query are open.
        3. If it was not, decide it, and write what was handed over in the same transaction: from here on it counts.
        4. Commit the transactions of the decision.
        5. Write down that this is done; where there were no transactions, the decision has said so.
        6. Abort what was open in step 2 and is not of the decision: attempts of tasks that failed or came second. Where
           the batch was decided before, only those of this run: another driver may be further by now.
        """
        while not self._is_settled(batch_id, staged, rows, family, is_repeated=is_repeated):
            pass

    def _is_settled(
        self,
        batch_id: int,
        staged: Sequence[StagedTransaction],
        rows: HandedOver | None,
        family: str,
        *,
        is_repeated: bool,
    ) -> bool:
        """False where the decider was kept from the batch before, and was shut out since: perhaps by another worker of
        this driver, perhaps by another driver. With a new one the log tells."""
        was_kept = False
        try:
            with self.decider() as decider:
                was_kept = decider.last is not None
                decision = self._decision_of(batch_id, decider, is_repeated=is_repeated)
                still_open = self._open_transactions(self._key if decision is None else family)
                if decision is None:
                    self._expect_open(batch_id, staged, still_open)
                    state = DecisionState.DECIDED if staged else DecisionState.ENDED
                    decision = Decision(batch_id, state, tuple(staged))
                    self.decide(decider, decision, rows)
                if decision.state is DecisionState.DECIDED:
                    self.roll_forward(decision)
                    self.conclude(decider, decision)
                self._abort(one for one in still_open if one not in decision.transactions)
        except Fenced:
            if was_kept:
                return False
            raise
        return True

    @contextmanager
    def decider(self) -> Iterator[Decider]:
        """The one that this process keeps for the query; where the block fails, it is not used again."""
        name = ("decider", self._key, *clients.name_of("decider", self._options.producer_settings))
        with clients.borrowed(name, lambda: Decider(self._options, self._log)) as decider:
            yield decider

    def last_decision(self) -> Decision | None:
        return self._log.last()

    def abort(self, batch_id: int, *, family: str, is_complete: bool) -> None:
        """Abort what tasks staged, unless a decision stands or may come to stand: then the next driver settles it.

        Tasks that did not come to their end (`is_complete` is false) may still be about to: Spark gives a Python
        process two seconds before it kills it. They are waited for, so that nothing of theirs holds readers up.
        """
        if self._log.may_have_decided(batch_id):
            return
        for round_number in range(1 if is_complete else _ABORT_ROUNDS):
            if round_number:
                time.sleep(_ABORT_ROUND_SECONDS)
            self._abort(self._open_transactions(family))

    # The steps. Each leaves something behind that the next driver can go on from.

    def decide(self, decider: Decider, decision: Decision, rows: HandedOver | None) -> None:
        decider.write(decision, rows)

    def roll_forward(self, decision: Decision) -> None:
        """Commit every transaction of a decision; those that are committed already stay so."""
        results = self._admin.end_transactions(decision.transactions, commit=True)
        lost = {one: error for one, error in results.errors.items() if _is_lost(error)}
        others = [error for one, error in results.errors.items() if one not in lost]
        if lost:
            self._lost(decision, lost)
        if others:
            raise OttlaError(
                f"batch {decision.batch_id} of {self._key} is decided, but not all of its transactions could be "
                f"committed yet ({others[0]}): start the query again within the transactions' timeout, and it goes on "
                "from there"
            )

    def conclude(self, decider: Decider, decision: Decision) -> None:
        decider.write(decision.ended())

    # What the steps need.

    def _decision_of(self, batch_id: int, decider: Decider, *, is_repeated: bool) -> Decision | None:
        last = decider.last or self.last_decision()
        if last is not None and last.batch_id > batch_id:
            raise superseded(self._key, batch_id, last)
        if last is not None and last.batch_id == batch_id:
            return last
        if is_repeated:
            raise OttlaError(
                f"batch {batch_id} of {self._key} was decided when its tasks began, and its decision is gone from "
                f"topic {self._options.decisions_topic}: was that topic deleted? Check the output before starting again"
            )
        return None

    def _open_transactions(self, family: str) -> list[StagedTransaction]:
        """All that begin with this but the decider's, as the coordinators know them now."""
        admin = self._admin
        mine = [
            one.transactional_id
            for one in admin.list_transactions(states=[_OPEN])
            if one.transactional_id.startswith(f"{family}-") and one.transactional_id != decider_id(self._key)
        ]
        described = admin.describe_transactions(mine).succeeded.values() if mine else ()
        return [
            StagedTransaction(one.transactional_id, one.producer_id, one.producer_epoch)
            for one in described
            if one.state == _OPEN
        ]

    def _expect_open(
        self, batch_id: int, staged: Sequence[StagedTransaction], still_open: Sequence[StagedTransaction]
    ) -> None:
        """What timed out must not be decided: this is the last moment at which the batch can be repeated."""
        known = {one.transactional_id for one in staged if one in still_open}
        gone = [one.transactional_id for one in staged if one.transactional_id not in known]
        if gone:
            raise StagedRowsLost(
                f"batch {batch_id} of {self._key}: {len(gone)} of its {len(staged)} transactions were aborted before "
                f"the batch was complete, the first is {gone[0]}. Nothing of it is visible, and a restart writes it "
                "anew; if batches take long, raise kafka.transaction.timeout.ms"
            )

    def _lost(self, decision: Decision, lost: dict[StagedTransaction, OttlaError]) -> None:
        names = ", ".join(one.transactional_id for one in list(lost)[:5])
        text = (
            f"batch {decision.batch_id} of {self._key} was decided, but {len(lost)} of its "
            f"{len(decision.transactions)} transactions can no longer be committed ({names}: "
            f"{next(iter(lost.values()))}). Their rows are not in the topics, those of the others are. "
            "kafka.transaction.timeout.ms must be longer than a batch and a restart take"
        )
        if self._options.fails_on_data_loss:
            raise DecidedRowsLost(
                f"{text}. Write the missing rows by other means, then set failOnDataLoss=false to let the query go on"
            )
        logger.error("%s. The query goes on without them, because failOnDataLoss is false", text)

    def _abort(self, transactions: Iterable[StagedTransaction]) -> None:
        """As good as can be: what stays open is aborted when its time is over, and nobody reads it before."""
        wanted = list(transactions)
        if not wanted:
            return
        try:
            errors = self._admin.end_transactions(wanted, commit=False).errors
        except OttlaError as error:
            logger.warning("%s: left-over transactions could not be aborted: %s", self._key, error)
            return
        for one, why in errors.items():
            logger.info("%s was not aborted: %s", one.transactional_id, why)


def superseded(key: str, batch_id: int, last: Decision) -> BatchSuperseded:
    return BatchSuperseded(
        f"batch {batch_id} of {key} comes after batch {last.batch_id} was decided: another driver runs this query, or "
        "its checkpoint was set back; to write old batches again, use a new checkpoint"
    )


def _is_lost(error: OttlaError) -> bool:
    return isinstance(error, Fenced) or (isinstance(error, BrokerError) and error.code in _NOT_OPEN_ANY_MORE)
