"""What becomes of an EndTxn, in each state.

With each transaction of version 2 the epoch grows, so the epoch of a request tells whether it is the next end or the
last one come again, because its answer was lost ("again": one below the present epoch, or the last usable epoch of the
producer id before):

    state            abort again   abort            commit again   commit
    Empty            fenced        ends, new epoch  fenced         INVALID_TXN_STATE
    Ongoing          fenced        ends, new epoch  fenced         ends, new epoch
    CompleteAbort    done already  ends, new epoch  INVALID_TXN_STATE  INVALID_TXN_STATE
    CompleteCommit   INVALID_TXN_STATE  ends, new epoch  done already  INVALID_TXN_STATE

Before version 2 the epoch stays. A transaction that is complete has ended already for who asks the same, and is in
the wrong state for who asks the opposite; an abort needs a transaction.

Prepared ones are not in these tables: until their markers are written everybody is told CONCURRENT_TRANSACTIONS.
"""

from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.transactions.transaction import EPOCH_BUMP_VERSION, LAST_USABLE_EPOCH, Status, Transaction


class EndRequest(NamedTuple):
    producer_id: int
    producer_epoch: int
    is_commit: bool
    client_version: int

    @property
    def bumps_epoch(self) -> bool:
        return self.client_version >= EPOCH_BUMP_VERSION


def is_new_end(transaction: Transaction, request: EndRequest) -> bool:
    """Whether the transaction ends now; False when it has ended this way already, and `KafkaError` otherwise."""
    check_id = _ends_with_new_epoch if request.bumps_epoch else _ends_with_same_epoch
    return check_id(transaction, request)


def _ends_with_new_epoch(transaction: Transaction, request: EndRequest) -> bool:
    epoch, present = request.producer_epoch, transaction.producer_epoch
    is_of_previous_id = (
        transaction.previous_producer_id == request.producer_id and epoch == LAST_USABLE_EPOCH and present == 0
    )
    comes_again = epoch + 1 == present or is_of_previous_id
    if transaction.producer_id != request.producer_id and not is_of_previous_id:
        raise wrong_producer(transaction, request.producer_id)
    if epoch != present and not (comes_again and transaction.status.is_complete):
        raise fenced(transaction, epoch)
    if transaction.status is Status.ONGOING:
        return True
    if not comes_again:
        if request.is_commit:
            raise _wrong_state(transaction, request)
        return True
    if _has_ended(transaction, request):
        return False
    raise _wrong_state(transaction, request)


def _ends_with_same_epoch(transaction: Transaction, request: EndRequest) -> bool:
    if transaction.producer_id != request.producer_id:
        raise wrong_producer(transaction, request.producer_id)
    if transaction.producer_epoch != request.producer_epoch:
        raise fenced(transaction, request.producer_epoch)
    if transaction.status is Status.ONGOING:
        return True
    if _has_ended(transaction, request):
        return False
    raise _wrong_state(transaction, request)


def _has_ended(transaction: Transaction, request: EndRequest) -> bool:
    return transaction.status is (Status.COMPLETE_COMMIT if request.is_commit else Status.COMPLETE_ABORT)


def wrong_producer(transaction: Transaction, producer_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"{transaction.transactional_id} has producer {transaction.producer_id}; {producer_id} came",
    )


def fenced(transaction: Transaction, epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"{transaction.transactional_id}: epoch {transaction.producer_epoch} expected, {epoch} came; a newer producer "
        "has the id, or the transaction timed out",
    )


def _wrong_state(transaction: Transaction, request: EndRequest) -> KafkaError:
    what = "committed" if request.is_commit else "aborted"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{transaction.transactional_id} is {transaction.status.title} and cannot be {what}",
    )
