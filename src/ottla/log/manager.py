"""All logs of a broker, over all its log directories."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from ottla.log import files
from ottla.log.checkpointing import OffsetCheckpoints
from ottla.log.config import LogConfig
from ottla.log.directory import (
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    LogDirectory,
    is_passing,
)
from ottla.log.files import TopicPartition
from ottla.log.index_cache import IndexCache
from ottla.log.loader import LoadedLog, LogLoader
from ottla.log.log import Log
from ottla.log.manager_settings import LogManagerSettings
from ottla.log.places import LogPlaces
from ottla.log.retention import Retention
from ottla.log.unusable import Checkpoints, LogPlace, UnusableLogs, is_of_one_log
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime import Clock, Disk, DiskSpace, Executor, IdSource
from ottla.runtime.open_files import OpenFiles

logger = logging.getLogger(__name__)

_LOADS_AT_ONCE = 8
_CLEAN_LOGS_AT_ONCE = 64
_CLOSES_AT_ONCE = 8
_RETRY_SECONDS = 10.0
_PRODUCERS_AT_ONCE = 1000
_LOGS_AT_ONCE = 500


class LogManager:
    """Holds every log under its partition; a partition has at most one, in one directory.

    The directories are open (locked) when they come here, and are closed by `shutdown`.
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
    ) -> None:
        self.directories = tuple(directories)
        self.settings = settings or LogManagerSettings()
        self._disk = disk
        self._clock = clock
        self._executor = executor
        self._ids = ids
        self.index_cache = IndexCache(self.settings.index_cache_bytes)
        self._places = LogPlaces(self.directories, disk, executor, ids)
        self._unusable = UnusableLogs()
        self._checkpoints = OffsetCheckpoints(self.directories, executor, self._unusable)
        self._retention = Retention(disk=disk, clock=clock, executor=executor)
        self._logs: dict[TopicPartition, Log] = {}
        self._recovery_points_written: set[TopicPartition] = set()
        self._creating: dict[TopicPartition, asyncio.Task[Log]] = {}
        self._deletions: dict[asyncio.Task[None], Log] = {}

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

    async def space(self, directory: LogDirectory) -> DiskSpace:
        """Of the disk that the directory is on. OSError when it does not say."""
        return await self._executor.run(self._disk.space, directory.path)

    # Starting.

    async def load(self, config_of: Callable[[str], LogConfig]) -> None:
        """Open every log that is on the disks; the ones that crashed are recovered. `config_of` takes a topic name.

        A directory that does not read is marked as failed, the others are used.
        """
        limit = asyncio.Semaphore(_LOADS_AT_ONCE)
        for directory in self.directories:
            if directory.failure is None:
                try:
                    await self._load_directory(directory, config_of, limit)
                except OSError as error:
                    directory.fail(error)

    async def _load_directory(
        self, directory: LogDirectory, config_of: Callable[[str], LogConfig], limit: asyncio.Semaphore
    ) -> None:
        names = await self._executor.run(self._list_logs, directory)
        checkpoints: Checkpoints = {
            file: await self._executor.run(directory.read_checkpoint, file)
            for file in (RECOVERY_POINT_CHECKPOINT, LOG_START_CHECKPOINT, REPLICATION_CHECKPOINT)
        }
        self._recovery_points_written |= checkpoints[RECOVERY_POINT_CHECKPOINT].keys()

        async def load_some(some: list[tuple[str, TopicPartition]]) -> None:
            places = [LogPlace.of(directory, name, topic_partition, checkpoints) for name, topic_partition in some]
            async with limit:
                loaders = [
                    self._loader_at(place, config_of(topic_partition.topic))
                    for place, (_, topic_partition) in zip(places, some, strict=True)
                ]
                found = await self._executor.run(_load_each, loaders)
                for (_, topic_partition), place, loader, loaded in zip(some, places, loaders, found, strict=True):
                    if isinstance(loaded, OSError):
                        logger.error("%s cannot be used until this is put right: %s", topic_partition, loaded)
                        self._unusable.add(topic_partition, place)
                    else:
                        self._add_at(topic_partition, place, loader, loaded)

        # After a clean stop a log takes less time than a change of threads; recovery is worth all of them.
        at_once = _CLEAN_LOGS_AT_ONCE if directory.was_clean else 1
        results = await asyncio.gather(
            *(load_some(names[first : first + at_once]) for first in range(0, len(names), at_once)),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _list_logs(self, directory: LogDirectory) -> list[tuple[str, TopicPartition]]:
        """In the executor. Directories of deleted partitions go for good."""
        found: list[tuple[str, TopicPartition]] = []
        for name in self._disk.list_directories(directory.path):
            if name.endswith(files.DELETE_DIRECTORY_SUFFIX):
                self._disk.delete_directory(files.join(directory.path, name))
                continue
            topic_partition = files.parse_log_directory(name)
            if topic_partition is not None:
                found.append((name, topic_partition))
        return found

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
        if topic_partition in self._recovery_points_written:
            # Those of a deleted topic of this name: after a crash they would be believed.
            await self.checkpoint_recovery_points()
        usable = self._places.by_load()
        if not usable or (self.has_failures and not is_new):
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} may be in a log directory that failed, or all did"
            )
        problems: list[str] = []
        for directory in usable:
            loader = self._loader(directory, str(topic_partition), config, clean=True)
            self._places.counts[directory.path] += 1
            try:
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
        if log is None:
            return False
        self._places.counts[log.directory.path] -= 1
        if log.log_start_offset > 0:
            # Or the next topic of this name could inherit it after a crash.
            await self.checkpoint_log_start_offsets()
        name = files.deleted_directory_name(log.topic_partition, self._ids.uuid().hex())
        if log.directory.failure is None:
            await log.retire(files.join(log.directory.path, name))
        task = asyncio.get_running_loop().create_task(self._delete_later(log))
        self._deletions[task] = log
        task.add_done_callback(lambda done: self._deletions.pop(done, None))
        return True

    async def set_aside_log(self, topic: str, partition: int) -> str:
        """Take a log out of use that no topic owns; its files stay, in a directory that never counts as a log again."""
        log = self._logs.pop(TopicPartition(topic, partition))
        self._places.counts[log.directory.path] -= 1
        name = files.deleted_directory_name(log.topic_partition, self._ids.uuid().hex(), files.STRAY_DIRECTORY_SUFFIX)
        await log.retire(files.join(log.directory.path, name))
        log.close_files()
        return log.path

    async def _delete_later(self, log: Log) -> None:
        await asyncio.sleep(log.config.file_delete_delay_ms / 1000)
        while True:
            try:
                await log.delete()
            except KafkaError as error:
                if log.directory.failure is None:
                    logger.warning("the files of %s are still there: %s", log.topic_partition, error)
                    await asyncio.sleep(_RETRY_SECONDS)
                    continue
            # Where the directory failed, the leftovers go at the next start.
            return

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
        self._recovery_points_written = set(self._logs)
        await self._checkpoint(RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point)

    async def checkpoint_high_watermarks(self) -> None:
        await self._checkpoint(REPLICATION_CHECKPOINT, lambda log: log.high_watermark)

    async def checkpoint_log_start_offsets(self) -> None:
        """Only logs whose start is not simply the beginning of their first segment are written."""
        await self._checkpoint(
            LOG_START_CHECKPOINT,
            lambda log: log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None,
        )

    async def _checkpoint(self, name: str, offset_of: Callable[[Log], int | None]) -> None:
        await self._checkpoints.write(name, self._logs.values, offset_of)

    async def flush_overdue(self) -> None:
        """Flush the logs whose oldest unflushed record has waited for `flush.ms`."""
        now = self._clock.monotonic()
        for log in [log for log in self._logs.values() if log.flushes_by_time]:
            if (
                log.recovery_point < log.log_end_offset
                and (now - log.last_flush) * 1000 >= log.config.flush_ms
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
        for number, log in enumerate(self.all_logs(), 1):
            if not number % _LOGS_AT_ONCE:
                await asyncio.sleep(0)
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
        if self._creating:
            await asyncio.wait(list(self._creating.values()))
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


def _load_each(loaders: list[LogLoader]) -> list[LoadedLog | OSError]:
    """In the executor. A log whose own files are in the way of it costs the others nothing."""
    found: list[LoadedLog | OSError] = []
    for loader in loaders:
        try:
            found.append(loader.load())
        except OSError as error:
            if not is_of_one_log(error):
                raise
            found.append(error)
    return found
