"""The moves of logs between the directories of this broker: at most one for a partition, a few at a time.

    begin -> (waits its turn) -> copied -> switched        called off, closed, failed: the log stays where it is

A move that a stop or a crash ended is begun again at the next start, in the same future directory. While a log moves
its segments are not compacted, or the copy would never be the same.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ottla.log import files
from ottla.log.directory import LogDirectory, is_passing
from ottla.log.files import TopicPartition
from ottla.log.index_cache import IndexCache
from ottla.log.log import Log
from ottla.log.moving import Announce, LogMove, MoveStopped, TargetFailed
from ottla.log.places import LogPlaces
from ottla.log.removal import DelayedRemovals
from ottla.log.segment import Segment
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.runtime import Disk, Executor, IdSource

logger = logging.getLogger(__name__)

MOVES_AT_ONCE = 2

Switch = Callable[[], Awaitable[tuple[Segment, ...] | None]]
# Runs what it is given while nobody appends to the log.
Hold = Callable[[Switch], Awaitable[tuple[Segment, ...] | None]]


class LogMoves:
    """`unfinished` are the future directories that were found at the start, until their log is opened or goes."""

    def __init__(
        self,
        *,
        disk: Disk,
        executor: Executor,
        ids: IdSource,
        cache: IndexCache,
        removals: DelayedRemovals,
        announce: Announce,
        places: LogPlaces,
    ) -> None:
        self._disk = disk
        self._executor = executor
        self._ids = ids
        self._cache = cache
        self._removals = removals
        self._announce = announce
        self._places = places
        self._limit = asyncio.Semaphore(MOVES_AT_ONCE)
        self._moves: dict[TopicPartition, LogMove] = {}
        self._tasks: dict[LogMove, asyncio.Task[None]] = {}
        self._queued: set[LogMove] = set()
        self.unfinished: dict[TopicPartition, tuple[LogDirectory, str]] = {}
        self.on_moved: Callable[[Log, LogDirectory], Awaitable[None]] | None = None

    def get(self, topic_partition: TopicPartition) -> LogMove | None:
        return self._moves.get(topic_partition)

    def all(self) -> list[LogMove]:
        return list(self._moves.values())

    def arriving_in(self, directory: LogDirectory) -> list[Log]:
        """Logs that are not there yet, and that its checkpoints must know: they may be the next moment."""
        return [move.log for move in self.all() if move.directory is directory and move.is_announced]

    def is_moving(self, log: Log) -> bool:
        move = self._moves.get(log.topic_partition)
        return move is not None and move.log is log

    # Beginning.

    async def begin(self, log: Log, directory: LogDirectory, hold: Hold) -> None:
        """Return once the future directory is there; the rest goes on by itself. KafkaError when it cannot be made."""
        name = files.future_directory_name(log.topic_partition, self._ids.uuid().hex())
        await self._begin(log, directory, name, hold)

    async def resume(self, log: Log, hold: Hold) -> None:
        """Go on with a move that was under way when the broker ended, if there was one."""
        found = self.unfinished.pop(log.topic_partition, None)
        if found is None:
            return
        directory, name = found
        if directory is log.directory:
            await self._remove(directory, name)
            return
        logger.info("the move of %s to %s goes on", log.topic_partition, directory.path)
        try:
            await self._begin(log, directory, name, hold)
        except KafkaError as error:
            logger.warning("the move of %s to %s cannot go on: %s", log.topic_partition, directory.path, error)

    async def _begin(self, log: Log, directory: LogDirectory, name: str, hold: Hold) -> None:
        move = LogMove(log, directory, name, disk=self._disk, executor=self._executor, cache=self._cache)
        assert log.topic_partition not in self._moves, "a log moves to one place at a time"
        self._moves[log.topic_partition] = move
        prepared: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.get_running_loop().create_task(self._move(move, hold, prepared))
        self._tasks[move] = task
        task.add_done_callback(lambda _: self._tasks.pop(move, None))
        await asyncio.wait([prepared, task], return_when=asyncio.FIRST_COMPLETED)
        if not prepared.done():
            message = f"{log.topic_partition} cannot be moved to {directory.path}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    # Moving.

    async def _move(self, move: LogMove, hold: Hold, prepared: "asyncio.Future[None]") -> None:
        """Only cancelled in the queue. Later, who wants it to end sets `is_stopped`, and it ends after the piece."""
        log, source = move.log, move.log.directory
        try:
            await move.prepare()
            prepared.set_result(None)
            self._queued.add(move)
            await self._limit.acquire()
            self._queued.discard(move)
            try:
                old_segments = None
                while old_segments is None:
                    await move.catch_up(self._announce)
                    old_segments = await hold(lambda: move.try_switch(self._announce))
            finally:
                self._limit.release()
            logger.info("%s moved from %s to %s", log.topic_partition, source.path, log.directory.path)
            self._places.moved(source, log.directory)
            self._removals.add(log.config.file_delete_delay_ms, source, old_segments, [move.aside_path])
            self._forget(move)
            if self.on_moved is not None:
                await self.on_moved(log, source)
        except MoveStopped as stopped:
            logger.info("%s", stopped)
            if log.is_closed and not move.is_stopped:
                # Its topic was deleted at the same moment.
                await move.abandon()
        except TargetFailed as failed:
            await self._target_failed(move, failed)
        except OSError as error:
            logger.error("%s stays in %s: it cannot be read or renamed: %s", log.topic_partition, source.path, error)
            if is_passing(error):
                await move.abandon()
            else:
                source.fail(error)
        except Exception:
            logger.exception("%s stays in %s: its move went wrong", log.topic_partition, log.directory.path)
            await move.abandon()
        finally:
            self._queued.discard(move)
            move.close()
            self._forget(move)

    def _forget(self, move: LogMove) -> None:
        if self._moves.get(move.log.topic_partition) is move:
            del self._moves[move.log.topic_partition]

    async def _target_failed(self, move: LogMove, failed: TargetFailed) -> None:
        log = move.log
        logger.error(
            "%s stays in %s: it could not be moved to %s: %s",
            log.topic_partition,
            log.directory.path,
            move.directory.path,
            failed.error,
        )
        await move.abandon()
        if not is_passing(failed.error):
            move.directory.fail(failed.error)

    # Ending.

    async def cancel(self, topic_partition: TopicPartition) -> None:
        """Return once nothing is left of a move of this partition, except where its target does not let go of it."""
        found = self.unfinished.pop(topic_partition, None)
        if found is not None:
            await self._remove(*found)
        move = self._moves.get(topic_partition)
        if move is not None:
            await self._stop(move)
            if move.log.directory is not move.directory:
                await move.abandon()

    async def _stop(self, move: LogMove) -> None:
        move.is_stopped = True
        task = self._tasks.get(move)
        if task is not None:
            if move in self._queued:
                task.cancel()
            await asyncio.wait([task])

    async def _remove(self, directory: LogDirectory, name: str) -> None:
        if directory.failure is None:
            try:
                await self._executor.run(self._disk.delete_directory, files.join(directory.path, name))
            except OSError as error:
                directory.fail(error)

    async def close(self) -> None:
        """End all moves; the future directories stay for the next start."""
        for move in self.all():
            await self._stop(move)
