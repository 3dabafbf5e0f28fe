"""All logs of a broker, over all its log directories."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from ottla.log import files, upkeep
from ottla.log.config import LogConfig
from ottla.log.deletion import LogDeletions
from ottla.log.directory import (
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    LogDirectory,
    PreferredDirectories,
    is_passing,
)
from ottla.log.files import TopicPartition
from ottla.log.index_cache import IndexCache
from ottla.log.inventory import Found, Inventory
from ottla.log.loader import LoadedLog, LogLoader, load_each
from ottla.log.log import Log
from ottla.log.log_checkpoints import LogCheckpoints
from ottla.log.manager_settings import LogManagerSettings
from ottla.log.moves import LogMoves
from ottla.log.places import LogPlaces
from ottla.log.removal import DelayedRemovals
from ottla.log.retention import Retention
from ottla.log.unusable import Checkpoints, LogPlace, UnusableLogs, is_of_one_log
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime import Clock, Disk, DiskSpace, Executor, IdSource
from ottla.runtime.open_files import OpenFiles

logger = logging.getLogger(__name__)

_LOADS_AT_ONCE = 8
_CLEAN_LOGS_AT_ONCE = 64
_CLOSES_AT_ONCE = 8


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
        self._places = LogPlaces(self.directories, disk, executor, ids)
        self._unusable = UnusableLogs()
        self._logs: dict[TopicPartition, Log] = {}
        self.checkpoints = LogCheckpoints(self.directories, executor, self._logs, self._unusable)
        self.removals = DelayedRemovals(disk, executor)
        self.moves = LogMoves(
            disk=disk,
            executor=executor,
            ids=ids,
            cache=self.index_cache,
            removals=self.removals,
            announce=self.checkpoints.announce,
            places=self._places,
        )
        self.checkpoints.moves = self.moves
        self._retention = Retention(disk=disk, clock=clock, executor=executor, removals=self.removals)
        self._preferred = PreferredDirectories()
        self._creating: dict[TopicPartition, asyncio.Task[Log]] = {}
        self._deletions = LogDeletions()

    def get(self, topic: str, partition: int) -> Log | None:
        return self._logs.get(TopicPartition(topic, partition))

    def all_logs(self) -> list[Log]:
        return list(self._logs.values())

    @property
    def open_files(self) -> OpenFiles:
        """The files of the logs that are open."""
        return self._disk.open_files

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
        checkpoints: Checkpoints = {
            file: await self._executor.run(directory.read_checkpoint, file)
            for file in (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT, REPLICATION_CHECKPOINT)
        }

        async def load_some(some: Sequence[Found]) -> None:
            places = [LogPlace.of(directory, each.name, each.topic_partition, checkpoints) for each in some]
            async with limit:
                loaders = [
                    self._loader_at(place, config_of(each.topic_partition.topic))
                    for place, each in zip(places, some, strict=True)
                ]
                results = await self._executor.run(load_each, loaders)
                for each, place, loader, loaded in zip(some, places, loaders, results, strict=True):
                    if isinstance(loaded, OSError):
                        logger.error("%s cannot be used until this is put right: %s", each.topic_partition, loaded)
                        self._unusable.add(each.topic_partition, place)
                    else:
                        self._add_at(each.topic_partition, place, loader, loaded)

        # After a clean stop a log takes less time than a change of threads; recovery is worth all of them.
        at_once = _CLEAN_LOGS_AT_ONCE if directory.was_clean else 1
        results = await asyncio.gather(
            *(load_some(found[first : first + at_once]) for first in range(0, len(found), at_once)),
            return_exceptions=True,
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

    def _loader_at(self, place: LogPlace, config: LogConfig) -> LogLoader:
        loader = self._loader(place.directory, place.name, config, place.was_clean)
        loader.recovery_point = place.recovery_point
        loader.log_start_offset = place.log_start_offset
        return loader

    def _add_at(self, topic_partition: TopicPartition, place: LogPlace, loader: LogLoader, loaded: LoadedLog) -> Log:
        log = self._add(topic_partition, place.directory, loader, loaded)
        self._places.counts[place.directory.path] += 1
        log.high_watermark = min(max(place.high_watermark, log.log_start_offset), log.log_end_offset)
        log.producer_state.transactions.replicated(log.high_watermark)
        return log

    def _add(
        self, topic_partition: TopicPartition, directory: LogDirectory, loader: LogLoader, loaded: LoadedLog
    ) -> Log:
        for damage in loaded.damage:
            logger.warning("%s: %s", topic_partition, damage)
            directory.note_damage(damage)
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
            await self._executor.run(self._places.write_topic_id, log.path, topic_id)
        if log.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{topic_partition} is on disk with another topic id: a topic of that name was deleted before",
            )
        return log

    async def _create(self, topic_partition: TopicPartition, topic_id: bytes, config: LogConfig, is_new: bool) -> Log:
        """In the first directory that takes it; a full one is passed over, one that fails is marked.

        One that is there and could not be opened is tried again.
        """
        place = self._unusable.place_of(topic_partition)
        if place is not None:
            return await self._load_again(topic_partition, place, config)
        usable = self._places.by_load()
        if not usable or (self.may_be_elsewhere and not is_new):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{topic_partition} may be in a log directory that failed or is missing, or all did",
            )
        await self.moves.cancel(topic_partition)
        preferred = self._preferred.take(topic_partition)
        problems: list[str] = []
        for directory in sorted(usable, key=lambda each: each is not preferred):
            loader = self._loader(directory, str(topic_partition), config, clean=True)
            self._places.counts[directory.path] += 1
            try:
                await self.checkpoints.forget(directory, topic_partition)
                loaded = await self._executor.run(self._make_and_load, directory, topic_partition, topic_id, loader)
                await self._places.finish(directory)
                return self._add(topic_partition, directory, loader, loaded)
            except OSError as error:
                self._places.counts[directory.path] -= 1
                problems.append(str(error))
                if not (is_passing(error) or is_of_one_log(error)):
                    directory.fail(error)
                with contextlib.suppress(OSError):
                    await self._executor.run(self._places.remove_half_made, loader.path)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} cannot be created: {'; '.join(problems)}")

    def _make_and_load(
        self, directory: LogDirectory, topic_partition: TopicPartition, topic_id: bytes, loader: LogLoader
    ) -> LoadedLog:
        self._places.make(directory, topic_partition, topic_id)
        return loader.load()

    async def _load_again(self, topic_partition: TopicPartition, place: LogPlace, config: LogConfig) -> Log:
        loader = self._loader_at(place, config)
        try:
            log = self._add_at(topic_partition, place, loader, await self._executor.run(loader.load))
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} cannot be opened: {error}") from error
        self._unusable.pop(topic_partition)
        logger.info("%s can be used again", topic_partition)
        return log

    async def delete_log(self, topic: str, partition: int) -> bool:
        """Take a log away at once and its files after `file.delete.delay.ms`; False when there is none.

        The renamed directory never counts as a log again, also when the broker stops before the files are gone.
        In a directory that failed nothing is renamed, since nothing can be relied on there.
        """
        log = self._logs.pop(TopicPartition(topic, partition), None)
        await self.moves.cancel(TopicPartition(topic, partition))
        if log is None:
            return False
        self._places.counts[log.directory.path] -= 1
        name = files.deleted_directory_name(log.topic_partition, self._ids.uuid().hex())
        if log.directory.failure is None:
            await log.retire(files.join(log.directory.path, name))
        self._deletions.add(log)
        return True

    async def set_aside_log(self, topic: str, partition: int) -> str:
        """Take a log out of use that no topic owns; its files stay, in a directory that never counts as a log again."""
        log = self._logs.pop(TopicPartition(topic, partition))
        self._places.counts[log.directory.path] -= 1
        name = files.deleted_directory_name(log.topic_partition, self._ids.uuid().hex(), files.STRAY_DIRECTORY_SUFFIX)
        await log.retire(files.join(log.directory.path, name))
        log.close_files()
        return log.path

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
        await self.checkpoints.write_all(RECOVERY_POINT_CHECKPOINT)

    async def checkpoint_high_watermarks(self) -> None:
        await self.checkpoints.write_all(REPLICATION_CHECKPOINT)

    async def checkpoint_log_start_offsets(self) -> None:
        """Only logs whose start is not simply the beginning of their first segment are written."""
        await self.checkpoints.write_all(LOG_START_CHECKPOINT)

    async def flush_overdue(self) -> None:
        """Flush the logs whose oldest unflushed record has waited for `flush.ms`."""
        await upkeep.flush_overdue(self.all_logs(), self._clock.monotonic())

    async def apply_retention(self) -> None:
        """Delete the segments that logs no longer keep."""
        await self._retention.apply(self.all_logs())

    async def expire_producers(self) -> None:
        """Forget silent producers."""
        await upkeep.expire_producers(self.all_logs(), self._clock.now_ms(), self.settings.producer_id_expiration_ms)

    # Stopping.

    async def shutdown(self, broker_epoch: int = -1) -> None:
        """Close everything so that the next start needs no recovery.

        1. logs are flushed and closed   2. checkpoints are written   3. the clean-shutdown marker is written
        4. the lock is given back. A directory where something failed gets no marker.
        """
        if self._creating:
            await asyncio.wait(list(self._creating.values()))
        await self.moves.close()
        self._deletions.close()
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
