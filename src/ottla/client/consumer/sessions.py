"""Fetch sessions from the client's side (KIP-227): a broker remembers what is fetched, and requests name only changes.

| the client sends               | means                                                                        |
|--------------------------------|------------------------------------------------------------------------------|
| session 0, epoch 0             | all partitions, and a wish for a session                                     |
| session n, epoch 1, 2, 3 ...   | what changed since the last request, and what is forgotten                   |
| session n, epoch 0             | all partitions; close the session n and begin another                        |

The broker answers with the session's id, or 0 when it keeps none. An error of the session says nothing about the
partitions: everything is simply sent again.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode

NO_SESSION = 0
FIRST_EPOCH = 0
_LAST_EPOCH = 2**31 - 1


class Wanted(NamedTuple):
    """What is asked for a partition; a change of any of it is told to the broker."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    max_bytes: int


class Ask(NamedTuple):
    """The part of a fetch request that is the session's: `partitions` are to be named, `forgotten` to be left out."""

    session_id: int
    epoch: int
    partitions: dict[TopicPartition, Wanted]
    forgotten: dict[TopicPartition, bytes]


class FetchSession:
    """The session with one broker. One request at a time: `ask`, then `answered` or `failed`."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._known

    def ask(self, wanted: Mapping[TopicPartition, Wanted]) -> Ask:
        """What to send so that the broker fetches exactly `wanted`."""
        if self.epoch == FIRST_EPOCH:
            self._known = dict(wanted)
            return Ask(self.session_id, FIRST_EPOCH, dict(wanted), {})
        changed: dict[TopicPartition, Wanted] = {}
        forgotten: dict[TopicPartition, bytes] = {}
        for partition, want in wanted.items():
            known = self._known.get(partition)
            if known == want:
                continue
            # A topic that was deleted and created again has another id, and the broker has to forget the old one.
            if known is not None and known.topic_id != want.topic_id:
                forgotten[partition] = known.topic_id
            changed[partition] = want
        for partition, known in self._known.items():
            if partition not in wanted:
                forgotten[partition] = known.topic_id
        for partition in forgotten:
            del self._known[partition]
        self._known.update(changed)
        return Ask(self.session_id, self.epoch, changed, forgotten)

    def answered(self, error_code: int, session_id: int) -> bool:
        """Take note of an answer; whether it is a good one."""
        if error_code:
            # A session that the broker does not know need not be closed there.
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
            self.epoch = FIRST_EPOCH
            return False
        if self.epoch != FIRST_EPOCH and session_id != self.session_id:
            self.session_id, self.epoch = NO_SESSION, FIRST_EPOCH
            # Session 0 in answer to a further request: the broker closed it, and what it says still holds.
            return session_id == NO_SESSION
        self.session_id = session_id
        if session_id == NO_SESSION:
            self.epoch = FIRST_EPOCH
        else:
            self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1
        return True

    def failed(self) -> None:
        """No answer came: the broker may be one request ahead, so the session is begun anew."""
        self.epoch = FIRST_EPOCH
