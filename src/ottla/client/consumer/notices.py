"""What becomes of positions without the doing of a user, said in the log at INFO: who reads may wonder why records are
missing or come again."""

import logging

from ottla.client.types import TopicPartition

logger = logging.getLogger(__name__)


class Resets:
    """Positions that were out of range, until it is known where reading goes on. An entry counts for one version of the
    partition's state: a seek meanwhile is the user's doing."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._lost: dict[TopicPartition, tuple[int, int]] = {}

    def begin(self, partition: TopicPartition, offset: int, version: int) -> None:
        self._lost[partition] = (offset, version)

    def go_on(self, partition: TopicPartition, before: int, version: int) -> None:
        """The reset goes on with another question."""
        lost = self._lost.get(partition)
        if lost is not None and lost[1] == before:
            self._lost[partition] = (lost[0], version)

    def end(self, partition: TopicPartition, version: int, offset: int) -> None:
        if not self._lost:
            return
        lost = self._lost.pop(partition, None)
        if lost is not None and lost[1] == version:
            logger.info(
                "%s: offset %d is out of the range of the log, reading goes on at %d (auto.offset.reset=%s)",
                partition,
                lost[0],
                offset,
                self._policy,
            )
