"""All replicas on this broker, kept in step with the cluster's image.

The image says what should be here; `apply` makes it so: logs are created for new partitions, roles are taken
on, logs of deleted topics are moved away. Images are applied one after another, in the order they came.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

from ottla.cluster.image import ClusterImage, TopicImage
from ottla.log.config import LogConfig
from ottla.log.manager import LogManager
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.partition import Partition
from ottla.replication.traffic import Traffic
from ottla.runtime import Clock, Executor

logger = logging.getLogger(__name__)


class ReplicaManager:
    """`departed` has the traffic of partitions that are no longer here, so that the broker's sums never fall."""

    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        clock: Clock,
        executor: Executor,
        topic_config: Callable[[Mapping[str, str]], LogConfig],
    ) -> None:
        self._node_id = node_id
        self._logs = logs
        self._clock = clock
        self._executor = executor
        self._topic_config = topic_config
        self.departed = Traffic()
        self._partitions: dict[str, dict[int, Partition]] = {}
        self._names: dict[bytes, str] = {}
        self._image: ClusterImage | None = None

    # Looking up

    def partition(self, topic: str, index: int) -> Partition:
        """The replica of a partition on this broker, or Kafka's error for why there is none."""
        try:
            return self._partitions[topic][index]
        except KeyError:
            pass
        if self._image is not None:
            image = self._image.topics.get(topic)
            if image is not None and 0 <= index < len(image.partitions):
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} has no replica here")
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}")

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._partitions.values():
            yield from partitions.values()

    # Following the image

    @property
    def applied_version(self) -> int:
        """The version of the image that was applied last, -1 before the first."""
        return -1 if self._image is None else self._image.version

    async def apply(self, image: ClusterImage) -> None:
        """Make this broker hold what the image gives it. Must not be called while it is still running."""
        previous = self._image
        has_new_defaults = previous is not None and previous.configs is not image.configs
        for name, topic in image.topics.items():
            before = None if previous is None else previous.topics.get(name)
            if before is topic:
                if has_new_defaults:
                    await self._apply_defaults(topic)
                continue
            if before is not None and before.topic_id != topic.topic_id:
                await self._delete_topic(before)
            await self._apply_topic(topic)
        if previous is not None:
            for name, topic in previous.topics.items():
                if name not in image.topics:
                    await self._delete_topic(topic)
        self._image = image

    async def _apply_topic(self, topic: TopicImage) -> None:
        config = self._topic_config(topic.configs)
        held = self._partitions.setdefault(topic.name, {})
        for image in topic.partitions:
            if self._node_id not in image.replicas:
                continue
            partition = held.get(image.index)
            if partition is None:
                try:
                    partition = await self._open(topic, image.index, config)
                except (KafkaError, OSError) as error:
                    logger.error("%s-%d cannot be opened: %s", topic.name, image.index, error)
                    continue
                held[image.index] = partition
            elif partition.log.config != config:
                await self._reconfigure(partition, config)
            partition.apply(image)
        self._names[topic.topic_id] = topic.name

    async def _apply_defaults(self, topic: TopicImage) -> None:
        """Tell the logs of a topic that did not change itself, but whose defaults may have."""
        config = self._topic_config(topic.configs)
        for index, partition in self._partitions.get(topic.name, {}).items():
            if partition.log.config != config:
                await self._reconfigure(partition, config)
                partition.apply(topic.partitions[index])

    async def _reconfigure(self, partition: Partition, config: LogConfig) -> None:
        partition.log.update_config(config)
        if partition.log.flushes_before_visible:
            # What was appended under the old settings would wait for a flush that nobody asks for.
            try:
                await partition.log.flush()
            except (KafkaError, OSError) as error:
                logger.error("%s could not be flushed: %s", partition, error)

    async def _open(self, topic: TopicImage, index: int, config: LogConfig) -> Partition:
        log = self._logs.get(topic.name, index)
        if log is not None and log.topic_id not in (None, topic.topic_id):
            logger.warning("%s-%d on disk belongs to a topic that was deleted; it is removed", topic.name, index)
            await self._logs.delete_log(topic.name, index)
            log = None
        if log is None:
            log = await self._logs.create_log(topic.name, index, topic.topic_id, config)
        else:
            log.update_config(config)
        partition = Partition(topic.name, index, log, self._node_id, self._clock, self._executor)
        if partition.log.flushes_before_visible:
            # What a broker that was killed had acknowledged must be visible again from the start.
            await log.flush()
        return partition

    async def _delete_topic(self, topic: TopicImage) -> None:
        self._names.pop(topic.topic_id, None)
        for index, partition in self._partitions.pop(topic.name, {}).items():
            await partition.stop()
            self.departed.add(partition.traffic)
            await self._logs.delete_log(topic.name, index)

    # Ending

    def release_waits(self) -> None:
        """Answer all long polls with what there is."""
        for partition in self:
            partition.release_waits()

    async def stop(self) -> None:
        for partition in self:
            await partition.stop()
