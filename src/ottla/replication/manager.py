"""All replicas on this broker, kept in step with the cluster's image.

The image says what should be here; `apply` makes it so: logs are created for new partitions, roles are taken
on, logs of deleted topics are moved away. Images are applied one after another, in the order they came.

A replica whose log directory failed is offline until the broker is restarted: all requests for it are answered with
KAFKA_STORAGE_ERROR. One that could not be created, since the disks are full, is offline too, and tried again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.files import MAX_DIRECTORY_NAME, UNIQUE_CHARACTERS, TopicPartition, future_directory_name
from ottla.log.manager import LogManager
from ottla.log.rewriting import rewrite_unflushed
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.partition import Partition
from ottla.replication.traffic import Traffic
from ottla.runtime import Clock, Executor

logger = logging.getLogger(__name__)

_CREATED_AT_ONCE = 64
_PARTITIONS_AT_ONCE = 500


class ReplicaManager:
    """`departed` has the traffic of partitions that are deleted or offline, so that the broker's sums never fall."""

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
        # None stands for a replica that could not be opened.
        self._offline: dict[str, dict[int, Partition | None]] = {}
        self._names: dict[bytes, str] = {}
        self._image: ClusterImage | None = None
        self._moving = asyncio.Lock()

    # Looking up

    def partition(self, topic: str, index: int) -> Partition:
        """The replica of a partition on this broker, or Kafka's error for why there is none."""
        try:
            return self._partitions[topic][index]
        except KeyError:
            pass
        if index in self._offline.get(topic, ()):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {topic}-{index} cannot be used")
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

    # Moving between directories

    async def move(self, topic: str, index: int, path: str) -> None:
        """Begin to move a replica to a log directory, or call its move off where that is the one it is in.

        Returns once that is certain to go on by itself; KafkaError when it cannot be. The wish for a partition that is
        not here yet is remembered for its creation.
        """
        logs, topic_partition = self._logs, TopicPartition(topic, index)
        directory = logs.directory_at(path)
        if len(future_directory_name(topic_partition, "0" * UNIQUE_CHARACTERS)) > MAX_DIRECTORY_NAME:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is too long for the name of a directory")
        if directory is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not among the log.dirs")
        if directory.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} failed: {directory.failure}")
        async with self._moving:
            if index not in self._partitions.get(topic, {}) and index not in self._offline.get(topic, {}):
                logs.prefer(topic, index, directory)
            try:
                partition = self.partition(topic, index)
            except KafkaError as error:
                if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, error.message) from error
                raise
            under_way = logs.moves.get(topic_partition)
            if under_way is not None and under_way.directory is not directory:
                await logs.moves.cancel(topic_partition)
            if partition.log.directory is directory or logs.moves.get(topic_partition) is not None:
                return
            if logs.may_be_elsewhere:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no replica is moved while a log directory is missing")
            await logs.moves.begin(partition.log, directory, partition.hold_appends)

    # Replicas that are out of use

    def take_offline(self, directory: LogDirectory) -> None:
        """Let go of the replicas in a directory that failed, and of everyone who waits for them."""
        for topic, held in self._partitions.items():
            for index, partition in list(held.items()):
                if partition.log.directory is directory:
                    self._offline.setdefault(topic, {})[index] = held.pop(index)
                    self.departed.add(partition.traffic)
                    partition.fail(
                        KafkaError(
                            ErrorCode.KAFKA_STORAGE_ERROR, f"the directory of {partition} failed: {directory.failure}"
                        )
                    )

    @property
    def offline_count(self) -> int:
        """The replicas here whose log directory failed, or which could not be opened."""
        return sum(map(len, self._offline.values()))

    def offline_partitions(self) -> dict[bytes, tuple[int, ...]]:
        """The replicas here that are out of use until a restart, by topic id.

        What a full disk refused is not among them: this broker goes on to lead it, as it does what is there already.
        """
        if self.has_missing:
            return {}
        return {
            topic_id: tuple(sorted(self._offline[name]))
            for topic_id, name in self._names.items()
            if self._offline.get(name)
        }

    @property
    def has_missing(self) -> bool:
        """Whether a replica could not be opened that may open later: a failed directory stays failed."""
        return not self._logs.may_be_elsewhere and any(None in offline.values() for offline in self._offline.values())

    async def open_missing(self) -> None:
        """Try again what could not be opened. Like `apply`, it must not run beside another."""
        if not self.has_missing:
            return
        for name, offline in list(self._offline.items()):
            topic = None if self._image is None else self._image.topics.get(name)
            if topic is not None and None in offline.values():
                await self._apply_topic(topic, topic)

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
            await self._apply_topic(topic, before)
        if previous is not None:
            for name, topic in previous.topics.items():
                if name not in image.topics:
                    await self._delete_topic(topic)
        self._image = image

    async def _apply_topic(self, topic: TopicImage, before: TopicImage | None) -> None:
        """Partitions that a topic did not have `before` are new, unless this is the first image after a start."""
        config = self._topic_config(topic.configs)
        held = self._partitions.setdefault(topic.name, {})
        offline = self._offline.setdefault(topic.name, {})
        known = 0 if before is None or before.topic_id != topic.topic_id else len(before.partitions)

        async def hold(image: PartitionImage) -> None:
            is_new = self._image is not None and image.index >= known
            try:
                partition = await self._open(topic, image.index, config, is_new)
            except (KafkaError, OSError) as error:
                if image.index not in offline:
                    logger.error("%s-%d cannot be opened: %s", topic.name, image.index, error)
                offline[image.index] = None
            else:
                held[image.index] = partition
                offline.pop(image.index, None)
                partition.apply(image)

        absent: list[PartitionImage] = []
        for image in topic.partitions:
            if image.index % _PARTITIONS_AT_ONCE == _PARTITIONS_AT_ONCE - 1:
                await asyncio.sleep(0)
            if self._node_id not in image.replicas or offline.get(image.index) is not None:
                continue
            partition = held.get(image.index)
            if partition is None:
                if self._logs.get(topic.name, image.index) is None:
                    absent.append(image)
                else:
                    await hold(image)
                continue
            if partition.log.config is not config and partition.log.config != config:
                await self._reconfigure(partition, config)
            if before is None or image.index >= known or before.partitions[image.index] is not image:
                partition.apply(image)
        for first in range(0, len(absent), _CREATED_AT_ONCE):
            await asyncio.gather(*map(hold, absent[first : first + _CREATED_AT_ONCE]))
        self._names[topic.topic_id] = topic.name

    async def _apply_defaults(self, topic: TopicImage) -> None:
        """Tell the logs of a topic that did not change itself, but whose defaults may have."""
        config = self._topic_config(topic.configs)
        # A copy: a directory that fails meanwhile takes its partitions out.
        for index, partition in list(self._partitions.get(topic.name, {}).items()):
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

    async def _open(self, topic: TopicImage, index: int, config: LogConfig, is_new: bool) -> Partition:
        log = self._logs.get(topic.name, index)
        if log is not None and log.directory.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"its directory failed: {log.directory.failure}")
        if log is not None and log.topic_id not in (None, topic.topic_id):
            place = await self._logs.set_aside_log(topic.name, index)
            logger.warning("%s-%d on disk is of another topic of that name; it is now in %s", topic.name, index, place)
            log = None
        if log is None:
            log = await self._logs.create_log(topic.name, index, topic.topic_id, config, is_new=is_new)
        else:
            log.update_config(config)
        partition = Partition(topic.name, index, log, self._node_id, self._clock, self._executor)
        if log.flushes_before_visible or log.flushes_by_count:
            await rewrite_unflushed(log, self._executor)
        if log.flushes_before_visible:
            # What a broker that was killed had acknowledged must be visible again from the start.
            await log.flush()
        await self._logs.moves.resume(log, partition.hold_appends)
        if log.directory.failure is not None:
            # It failed meanwhile, when nobody could know of this partition.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"its directory failed: {log.directory.failure}")
        return partition

    async def _delete_topic(self, topic: TopicImage) -> None:
        self._names.pop(topic.topic_id, None)
        held, offline = self._partitions.pop(topic.name, {}), self._offline.pop(topic.name, {})
        for served in held.values():
            self.departed.add(served.traffic)
        for index, partition in [*held.items(), *offline.items()]:
            if partition is not None:
                await partition.stop()
            try:
                await self._logs.delete_log(topic.name, index)
            except KafkaError as error:
                logger.error("the log of %s-%d cannot be deleted: %s", topic.name, index, error)

    # Ending

    def release_waits(self) -> None:
        """Answer all long polls with what there is."""
        for partition in self:
            partition.release_waits()

    async def stop(self) -> None:
        for partition in list(self):
            await partition.stop()
