"""One member's next step from what it has to what it is to have.

    kept      = what it has and is to have
    to revoke = what it has and is not to have
    to assign = what it is to have and does not, as far as nobody else has it

| what there is          | the member's epoch | its state              |
|------------------------|--------------------|------------------------|
| something to revoke    | stays              | UNREVOKED_PARTITIONS   |
| else, others have some | the target's       | UNRELEASED_PARTITIONS  |
| else                   | the target's       | STABLE                 |

It is to be told to revoke before it is given anything, and it stays in its epoch until it says what it owns and
nothing of it is to be revoked. A topic that it no longer subscribes to is not its own any more, whatever an older
target says: a member that unsubscribed must not be given such partitions again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ottla.groups.consumer.assignors import Assignment, topic_order
from ottla.groups.consumer.member import ConsumerMember, GivenPartitions, MemberState
from ottla.protocol.errors import ErrorCode, KafkaError

UNOWNED = -1
_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Where a member is heading, and what it says that it has.

    `owned` is None when the member did not say. `owner_epoch` is the epoch of a partition's owner, -1 without one.
    """

    target_epoch: int
    target: Assignment
    subscribed_topic_ids: frozenset[bytes]
    has_subscription_changed: bool
    owned: frozenset[tuple[bytes, int]] | None
    owner_epoch: Callable[[bytes, int], int]

    def next_step(self, member: ConsumerMember) -> ConsumerMember:
        """The member as it is from now on; the same object when nothing is to be done."""
        if member.state is MemberState.STABLE:
            if member.member_epoch != self.target_epoch:
                return self._advance(member, member.member_epoch)
            return self._without_unsubscribed(member) if self.has_subscription_changed else member
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            if self._owns_any(member.pending_revocation):
                return self._without_unsubscribed(member) if self.has_subscription_changed else member
            return self._advance(member, member.member_epoch)
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            return self._advance(member, member.member_epoch)
        if self.owned is None or self.owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"member {member.member_id} is in a state that is not known here; let it join again with nothing",
            )
        return self._advance(member, self.target_epoch)

    def _owns_any(self, partitions: GivenPartitions) -> bool:
        """Whether the member may still have some of them; one that does not say what it has may."""
        if self.owned is None:
            return True
        return any(index in partitions.get(topic_id, ()) for topic_id, index in self.owned)

    def _without_unsubscribed(self, member: ConsumerMember) -> ConsumerMember:
        """Take away at once what it no longer subscribes to; the next target will come later."""
        kept = {topic_id: given for topic_id, given in member.assigned.items() if topic_id in self.subscribed_topic_ids}
        if len(kept) == len(member.assigned):
            return member
        to_revoke = {topic_id: dict(given) for topic_id, given in member.pending_revocation.items()}
        for topic_id, given in member.assigned.items():
            if topic_id not in kept:
                to_revoke.setdefault(topic_id, {}).update(given)
        moved = replace(member, previous_member_epoch=member.member_epoch, assigned=kept)
        if not self._owns_any(to_revoke):
            return moved
        return replace(moved, state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=to_revoke)

    def _advance(self, member: ConsumerMember, epoch_meanwhile: int) -> ConsumerMember:
        kept: dict[bytes, dict[int, int]] = {}
        to_revoke: dict[bytes, dict[int, int]] = {}
        to_assign: dict[bytes, list[int]] = {}
        waits_for_others = False
        for topic_id in sorted({*self.target, *member.assigned}, key=topic_order):
            target = self.target.get(topic_id, _NONE) if topic_id in self.subscribed_topic_ids else _NONE
            had = member.assigned.get(topic_id, {})
            for index, epoch in had.items():
                (kept if index in target else to_revoke).setdefault(topic_id, {})[index] = epoch
            for index in sorted(target - had.keys()):
                if self._is_free(member, topic_id, index):
                    to_assign.setdefault(topic_id, []).append(index)
                else:
                    waits_for_others = True
        if to_revoke and self._owns_any(to_revoke):
            return replace(
                member,
                state=MemberState.UNREVOKED_PARTITIONS,
                member_epoch=epoch_meanwhile,
                previous_member_epoch=member.member_epoch,
                assigned=kept,
                pending_revocation=to_revoke,
            )
        for topic_id, indexes in to_assign.items():
            kept.setdefault(topic_id, {}).update(dict.fromkeys(indexes, self.target_epoch))
        return replace(
            member,
            state=MemberState.UNRELEASED_PARTITIONS if waits_for_others else MemberState.STABLE,
            member_epoch=self.target_epoch,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            pending_revocation={},
        )

    def _is_free(self, member: ConsumerMember, topic_id: bytes, index: int) -> bool:
        """Nobody has it, or this very member does and was about to give it back."""
        if self.owner_epoch(topic_id, index) == UNOWNED:
            return True
        return index in member.pending_revocation.get(topic_id, ())
