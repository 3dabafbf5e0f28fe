"""All logs of a broker, over all its log directories."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ottla.log import files
from ottla.log.config import LogConfig
from ottla.log.config_keys import INT64_MAX
from ottla.log.creation import make_log_directory, remove_half_made, write_topic_id
from ottla.log.directory import (
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    LogDirectory,
    PreferredDirectories,
    is_full,
)
from ottla.log.files import TopicPartition
from ottla.log.index_cache import DEFAULT_LIMIT_BYTES, IndexCache
from ottla.log.inventory import Found, Inventory
from ottla.log.loader import LogLoader
from ottla.log.log import Log
from ottla.log.moves import LogMoves
from ottla.log.offset_checkpoints import OffsetCheckpoints
from ottla.log.removal import DelayedRemovals
from ottla.log.retention import Retention
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime import Clock, Disk, DiskSpace, Executor, IdSource

logger = logging.getLogger(__name__)

_LOADS_AT_ONCE = 8
_CLOSES_AT_ONCE = 8
_PRODUCERS_AT_ONCE = 1000

# What the checkpoints say of a log; nothing where a start finds it out by itself.
_CHECKPOINTED: dict[str, Callable[[Log], int | None]] = {
    RECOVERY_POINT_CHECKPOINT: lambda log: log.recovery_point,
    REPLICATION_CHECKPOINT: lambda log: log.high_watermark,
    LOG_START_CHECKPOINT: lambda log: (
        log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None
    ),
}


@dataclass(frozen=True, slots=True)
class LogManagerSettings:
    """Broker-wide settings of the logs, by Kafka's names with underscores."""

    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    log_retention_check_interval_ms: int = 300_000
    flush_check_interval_ms: int = 100
    index_cache_bytes: int = DEFAULT_LIMIT_BYTES


class LogManager:
    """Holds every log under its partition; a partition has at most one, in one directory.

    The directories are open (locked) when they come here, and are closed by `shutdown`. `is_missing_some` when this
    broker has had others that are not among them.
    """

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        *,
        disk: Disk,
        clock: Clock,
        executor: Executor,
        ids: IdSource,
        settings: LogManagerSettings | None = None,
        is_missing_some: bool = False,
    ) -> None:
        self.directories = tuple(directories)
        self.is_missing_some = is_missing_some
        self.settings = settings or LogManagerSettings()
        self._disk = disk
        self._clock = clock
        self._executor = executor
        self._ids = ids
        self.index_cache = IndexCache(self.settings.index_cache_bytes)
        self.checkpoints = OffsetCheckpoints(executor)
        self.removals = DelayedRemovals(disk, executor)
        self.moves = LogMoves(
            disk=disk,
            executor=executor,
            ids=ids,
            cache=self.index_cache,
            removals=self.removals,
            announce=self._announce,
        )
        self._retention = Retention(disk=disk, clock=clock, executor=executor, removals=self.removals)
        self._preferred = PreferredDirectories()
        self._logs: dict[TopicPartition, Log] = {}
        self._creating: dict[TopicPartition, asyncio.Task[Log]] = {}
        self._deletions: dict[asyncio.Task[None], Log] = {}

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get(TopicPartition(topic, partition))

    def all_logs(self) -> list[Log]:
        return list(self._logs.values())

    @property
    def has_failures(self) -> bool:
        return any(directory.failure is not None for directory in self.directories)

    @property
    def may_be_elsewhere(self) -> bool:
        """Whether a log that is not here may be in a directory that failed, or is not here itself."""
        return self.has_failures or self.is_missing_some

    def directory_at(self, path: str) -> LogDirectory | None:
        return next((directory for directory in self.directories if directory.path == path), None)

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Where a log that is not here yet should be made, should it ever be."""
        self._preferred.add(TopicPartition(topic, partition), directory)

    async def space(self, directory: LogDirectory) -> DiskSpace:
        """Of the disk that the directory is on. OSError when it does not say."""
        return await self._executor.run(self._disk.space, directory.path)

    # Starting.

    async def load(self, config_of: Callable[[str], LogConfig]) -> None:
        """Open every log that is on the disks; the ones that crashed are recovered. `config_of` takes a topic name.

        A directory that does not read is marked as failed, the others are used.
        """
        inventory = Inventory(self._disk, not self.may_be_elsewhere, len(self.directories) > 1)
        await self._executor.run(inventory.take, self.directories)
        self.moves.unfinished = await self._executor.run(inventory.unfinished_moves)
        limit = asyncio.Semaphore(_LOADS_AT_ONCE)
        for directory in self.directories:
            if directory.failure is None:
                found = [each for each in inventory.logs if each.directory is directory]
                try:
                    await self._load_directory(directory, found, config_of, limit)
                except OSError as error:
                    directory.fail(error)

    async def _load_directory(
        self,
        directory: LogDirectory,
        found: Sequence[Found],
        config_of: Callable[[str], LogConfig],
        limit: asyncio.Semaphore,
    ) -> None:
        recovery_points = await self._executor.run(directory.read_checkpoint, RECOVERY_POINT_CHECKPOINT)
        start_offsets = await self._executor.run(directory.read_checkpoint, LOG_START_CHECKPOINT)
        high_watermarks = await self._executor.run(directory.read_checkpoint, REPLICATION_CHECKPOINT)

        async def load_one(name: str, topic_partition: TopicPartition) -> None:
            async with limit:
                loader = self._loader(directory, name, config_of(topic_partition.topic), directory.was_clean)
                loader.recovery_point = recovery_points.get(topic_partition, 0)
                loader.log_start_offset = start_offsets.get(topic_partition, 0)
                log = await self._open(topic_partition, directory, loader)
                mark = high_watermarks.get(topic_partition, 0)
                log.high_watermark = min(max(mark, log.log_start_offset), log.log_end_offset)

        results = await asyncio.gather(
            *(load_one(each.name, each.topic_partition) for each in found), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _loader(self, directory: LogDirectory, name: str, config: LogConfig, clean: bool) -> LogLoader:
        return LogLoader(
            disk=self._disk,
            path=files.join(directory.path, name),
            config=config,
            cache=self.index_cache,
            now_ms=self._clock.now_ms(),
            clean=clean,
            producer_expiration_ms=self.settings.producer_id_expiration_ms,
        )

    async def _open(self, topic_partition: TopicPartition, directory: LogDirectory, loader: LogLoader) -> Log:
        loaded = await self._executor.run(loader.load)
        log = Log(
            topic_partition,
            loader.path,
            directory,
            loader.config,
            loaded,
            disk=self._disk,
            clock=self._clock,
            executor=self._executor,
            ids=self._ids,
            cache=self.index_cache,
        )
        known = self._logs.setdefault(topic_partition, log)
        if known is not log:
            log.close_files()
            raise OSError(f"{topic_partition} is in two log directories: {known.path} and {log.path}")
        return log

    # Creating and deleting.

    async def create_log(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, *, is_new: bool = True
    ) -> Log:
        """The partition's log, made if it is not there yet, in the directory that has the fewest.

        One that is not new and not there may be in a directory that failed, and is not made a second time.
        """
        topic_partition = TopicPartition(topic, partition)
        log = self._logs.get(topic_partition)
        if log is None:
            task = self._creating.get(topic_partition)
            if task is None:
                work = self._create(topic_partition, topic_id, config, is_new)
                task = self._creating[topic_partition] = asyncio.get_running_loop().create_task(work)
                task.add_done_callback(lambda _: self._creating.pop(topic_partition, None))
            log = await asyncio.shield(task)
        if log.topic_id is None:
            log.topic_id = topic_id
            await self._executor.run(write_topic_id, self._disk, log.path, topic_id)
        if log.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{topic_partition} is on disk with another topic id: a topic of that name was deleted before",
            )
        return log

    async def _create(self, topic_partition: TopicPartition, topic_id: bytes, config: LogConfig, is_new: bool) -> Log:
        """In the first directory that takes it; a full one is passed over, one that fails is marked."""
        usable = [directory for directory in self.directories if directory.failure is None]
        if not usable or (self.may_be_elsewhere and not is_new):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{topic_partition} may be in a log directory that failed or is missing, or all did",
            )
        await self.moves.cancel(topic_partition)
        counts = {id(directory): 0 for directory in usable}
        for log in self._logs.values():
            if id(log.directory) in counts:
                counts[id(log.directory)] += 1
        preferred = self._preferred.take(topic_partition)
        problems: list[str] = []
        for directory in sorted(usable, key=lambda each: (each is not preferred, counts[id(each)])):
            loader = self._loader(directory, str(topic_partition), config, clean=True)
            try:
                await self.checkpoints.forget(directory, topic_partition)
                await self._executor.run(make_log_directory, self._disk, directory.path, loader.path, topic_id)
                return await self._open(topic_partition, directory, loader)
            except OSError as error:
                problems.append(str(error))
                if not is_full(error):
                    directory.fail(error)
                with contextlib.suppress(OSError):
                    await self._executor.run(remove_half_made, self._disk, loader.path)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} cannot be created: {'; '.join(problems)}")

    async def delete_log(self, topic: str, partition: int) -> bool:
        """Take a log away at once and its files after `file.delete.delay.ms`; False when there is none.

        The renamed directory never counts as a log again, also when the broker stops before the files are gone.
        In a directory that failed nothing is renamed, since nothing can be relied on there.
        """
        log = self._logs.pop(TopicPartition(topic, partition), None)
        await self.moves.cancel(TopicPartition(topic, partition))
        if log is None:
            return False
        name = files.deleted_directory_name(log.topic_partition, self._ids.uuid().hex())
        if log.directory.failure is None:
            await log.retire(files.join(log.directory.path, name))
        task = asyncio.get_running_loop().create_task(self._delete_later(log))
        self._deletions[task] = log
        task.add_done_callback(lambda done: self._deletions.pop(done, None))
        return True

    async def _delete_later(self, log: Log) -> None:
        await asyncio.sleep(log.config.file_delete_delay_ms / 1000)
        try:
            await log.delete()
        except KafkaError:
            return  # The directory is marked as failed; the leftovers go at the next start.

    # Keeping.

    async def run(self) -> None:
        """Checkpoints, flushes by time, retention and expiry of producers, until cancelled."""
        settings = self.settings
        async with asyncio.TaskGroup() as group:
            for interval_ms, work in (
                (settings.log_flush_offset_checkpoint_interval_ms, self.checkpoint_recovery_points),
                (settings.log_flush_start_offset_checkpoint_interval_ms, self.checkpoint_log_start_offsets),
                (settings.replica_high_watermark_checkpoint_interval_ms, self.checkpoint_high_watermarks),
                (settings.flush_check_interval_ms, self.flush_overdue),
                (settings.log_retention_check_interval_ms, self.apply_retention),
                (settings.producer_id_expiration_check_interval_ms, self.expire_producers),
            ):
                group.create_task(self._repeat(interval_ms / 1000, work))

    async def _repeat(self, interval_seconds: float, work: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(interval_seconds)
            result = work()
            if asyncio.iscoroutine(result):
                await result

    async def checkpoint_recovery_points(self) -> None:
        await self._checkpoint(RECOVERY_POINT_CHECKPOINT)

    async def checkpoint_high_watermarks(self) -> None:
        await self._checkpoint(REPLICATION_CHECKPOINT)

    async def checkpoint_log_start_offsets(self) -> None:
        """Only logs whose start is not simply the beginning of their first segment are written."""
        await self._checkpoint(LOG_START_CHECKPOINT)

    async def _checkpoint(self, name: str) -> None:
        for directory in self.directories:
            await self.checkpoints.write(directory, name, partial(self._offsets, directory, name))

    def _offsets(self, directory: LogDirectory, name: str) -> dict[TopicPartition, int]:
        offset_of = _CHECKPOINTED[name]
        logs = [log for log in self._logs.values() if log.directory is directory]
        logs += self.moves.arriving_in(directory)
        return {log.topic_partition: offset for log in logs if (offset := offset_of(log)) is not None}

    async def _announce(self, directory: LogDirectory) -> None:
        """Tell the checkpoints of logs that move there; OSError when that does not work."""
        for name in _CHECKPOINTED:
            await self.checkpoints.must_write(directory, name, partial(self._offsets, directory, name))

    async def flush_overdue(self) -> None:
        """Flush the logs whose oldest unflushed record has waited for `flush.ms`."""
        now_ms = self._clock.now_ms()
        for log in self.all_logs():
            interval_ms = log.config.flush_ms
            if (
                interval_ms != INT64_MAX
                and log.recovery_point < log.log_end_offset
                and now_ms - log.last_flush_ms >= interval_ms
                and log.directory.failure is None
            ):
                try:
                    await log.flush()
                except KafkaError:
                    continue  # The directory is marked as failed by now, or full.

    async def apply_retention(self) -> None:
        """Delete the segments that logs no longer keep."""
        await self._retention.apply(self.all_logs())

    async def expire_producers(self) -> None:
        """Forget silent producers, a bounded number in one turn of the loop."""
        now_ms = self._clock.now_ms()
        for log in self.all_logs():
            state = log.producer_state
            producer_ids = list(state.producers)
            for first in range(0, len(producer_ids), _PRODUCERS_AT_ONCE):
                some = producer_ids[first : first + _PRODUCERS_AT_ONCE]
                state.remove_expired(now_ms, self.settings.producer_id_expiration_ms, some)
                await asyncio.sleep(0)

    # Stopping.

    async def shutdown(self, broker_epoch: int = -1) -> None:
        """Close everything so that the next start needs no recovery.

        1. logs are flushed and closed   2. checkpoints are written   3. the clean-shutdown marker is written
        4. the lock is given back. A directory where something failed gets no marker.
        """
        await self.moves.close()
        for task, log in list(self._deletions.items()):
            task.cancel()
            log.close_files()
        limit = asyncio.Semaphore(_CLOSES_AT_ONCE)
        broken: set[str] = set()

        async def close(log: Log) -> None:
            async with limit:
                if log.directory.failure is not None:
                    log.close_files()
                    return
                try:
                    await log.close()
                except KafkaError:
                    broken.add(log.directory.path)

        await asyncio.gather(*(close(log) for log in self.all_logs()))
        await self._retention.close()
        self.removals.close()
        await self.checkpoint_recovery_points()
        await self.checkpoint_log_start_offsets()
        await self.checkpoint_high_watermarks()
        for directory in self.directories:
            if directory.failure is None and directory.path not in broken:
                try:
                    await self._executor.run(directory.write_clean_shutdown_marker, broker_epoch)
                except OSError as error:
                    directory.fail(error)
            directory.close()
        self._logs.clear()
