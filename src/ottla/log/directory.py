"""One `log.dir`: its lock, its identity, its checkpoints and its clean-shutdown marker.

Everything here blocks: it runs in the executor or before the loop starts.
"""

import errno
import json
import logging
from collections.abc import Callable, Mapping

from ottla.log.checkpoints import BadCheckpoint, decode_offsets, decode_properties, encode_offsets, encode_properties
from ottla.log.damage import Damage
from ottla.log.files import TopicPartition, join, parse_log_directory
from ottla.protocol.uuids import uuid_from_text, uuid_to_text
from ottla.runtime import Disk, DiskLock, IdSource, is_shortage

logger = logging.getLogger(__name__)

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
REPLICATION_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
CHECKPOINTS = (RECOVERY_POINT_CHECKPOINT, REPLICATION_CHECKPOINT, LOG_START_CHECKPOINT, CLEANER_CHECKPOINT)

_META_VERSION = "1"
_UNKNOWN_BROKER_EPOCH = -1
_MAX_WISHES = 10_000


class UnusableDirectory(OSError):
    """A log directory that must not be used: in use already, or it belongs to another broker or cluster."""


def is_full(error: OSError) -> bool:
    """Whether the disk only has no room left: what was asked is refused, and what is stored can still be trusted."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_passing(error: OSError) -> bool:
    """Whether it may work later, with no harm done: no room on the disk, or no descriptor left to open a file with."""
    return is_full(error) or is_shortage(error)


class LogDirectory:
    """`failure` is set once the device could not be trusted any more; every log in it then refuses to work.

    `flushes` and `flush_seconds` count the flushes of its logs and the time that they took; `cut_bytes` and
    `damaged_bytes` what was bad in them when they were opened, and was cut off or left in its place.
    `on_failure` is called once, when that happens: on the loop, in the middle of whatever noticed it.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._lock: DiskLock | None = None
        self.path = path
        self.failure: OSError | None = None
        self.flushes = 0
        self.flush_seconds = 0.0
        self.cut_bytes = 0
        self.damaged_bytes = 0
        self.on_failure: Callable[[LogDirectory], None] | None = None
        self.cluster_id = ""
        self._properties: dict[str, str] = {}
        self.node_id = -1
        self.directory_id = b""
        self.was_clean = False
        self.last_broker_epoch = _UNKNOWN_BROKER_EPOCH
        self._checkpoints: dict[str, Mapping[TopicPartition, int]] = {}
        self._written: set[str] = set()

    def __repr__(self) -> str:
        return f"LogDirectory({self.path!r})"

    def fail(self, error: OSError) -> None:
        """The first failure is kept: what follows is mostly its consequence."""
        if self.failure is None:
            self.failure = error
            if self.on_failure is not None:
                self.on_failure(self)

    def note_damage(self, damage: Damage) -> None:
        if damage.cut:
            self.cut_bytes += damage.size_bytes
        else:
            self.damaged_bytes += damage.size_bytes

    def is_new(self) -> bool:
        """Whether nobody has ever used it, or a disk is not mounted there. OSError when it does not read.

        One with logs and without `meta.properties` has only lost that file.
        """
        if not self._disk.exists(self.path):
            return True
        names = self._disk.list_directory(self.path)
        return META_PROPERTIES not in names and not any(parse_log_directory(name) for name in names)

    def open(self, node_id: int, ids: IdSource, cluster_id: str | None = None) -> None:
        """Lock it and find out whose it is; a new one becomes this broker's.

        Without a `cluster_id` the one of the directory is taken; if it has none, `join_cluster` gives it one.
        """
        if not self._disk.exists(self.path):
            self._disk.make_directory(self.path)
            self._disk.sync_directory(self.path.rpartition("/")[0] or "/")
        try:
            self._lock = self._disk.lock(join(self.path, LOCK))
        except BlockingIOError as error:
            raise UnusableDirectory(f"log directory {self.path} is in use by another broker: {error}") from None
        try:
            self._identify(node_id, ids, cluster_id)
            self._take_clean_shutdown_marker()
            if not self._disk.exists(join(self.path, CLEANER_CHECKPOINT)):
                self.write_checkpoint(CLEANER_CHECKPOINT, {})
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # Identity.

    def _identify(self, node_id: int, ids: IdSource, cluster_id: str | None) -> None:
        path = join(self.path, META_PROPERTIES)
        try:
            found = decode_properties(self._disk.read(path))
        except FileNotFoundError:
            found = {}
        else:
            self._check_owner(found, node_id, cluster_id)
        self.node_id = node_id
        self.cluster_id = found.get("cluster.id") or cluster_id or ""
        directory_id = found.get("directory.id")
        try:
            self.directory_id = ids.uuid() if directory_id is None else uuid_from_text(directory_id)
        except ValueError as error:
            raise UnusableDirectory(f"{path}: directory.id: {error}; without that line a new id is drawn") from None
        self._properties = found

    def join_cluster(self, cluster_id: str) -> None:
        """Write down whose directory this is, if that is not there already. The cluster must be the one it names."""
        self._check_owner(self._properties, self.node_id, cluster_id)
        self.cluster_id = cluster_id
        wanted = {
            **self._properties,
            "version": _META_VERSION,
            "cluster.id": cluster_id,
            "node.id": str(self.node_id),
            "directory.id": uuid_to_text(self.directory_id),
        }
        if wanted != self._properties:
            self._disk.write_atomically(join(self.path, META_PROPERTIES), encode_properties(wanted))
            self._properties = wanted

    def _check_owner(self, found: Mapping[str, str], node_id: int, cluster_id: str | None) -> None:
        expected = {"version": _META_VERSION, "node.id": str(node_id), "cluster.id": cluster_id}
        for name, value in expected.items():
            if value is not None and found.get(name, value) != value:
                raise UnusableDirectory(
                    f"{join(self.path, META_PROPERTIES)}: expected {name}={value}, found {name}={found[name]}: "
                    f"the directory belongs to another broker, or the line is damaged and has to be put right"
                )

    # The clean-shutdown marker.

    def _take_clean_shutdown_marker(self) -> None:
        """Note whether the last stop was clean, and remove the marker: from now on a crash is a crash."""
        path = join(self.path, CLEAN_SHUTDOWN)
        try:
            data = self._disk.read(path)
        except FileNotFoundError:
            return
        self.was_clean = True
        try:
            content = json.loads(data)
            self.last_broker_epoch = int(content["brokerEpoch"])
        except (ValueError, KeyError, TypeError):
            self.last_broker_epoch = _UNKNOWN_BROKER_EPOCH
        self._disk.delete(path)
        self._disk.sync_directory(self.path)

    def write_clean_shutdown_marker(self, broker_epoch: int = _UNKNOWN_BROKER_EPOCH) -> None:
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._disk.write_atomically(join(self.path, CLEAN_SHUTDOWN), content.encode("ascii"))

    # Checkpoints.

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Offsets by partition; empty when there is no such file, or one that does not read.

        Without them more is recovered, cleaned again or readable again than need be, and nothing is lost.
        """
        try:
            return decode_offsets(join(self.path, name), self._disk.read(join(self.path, name)))
        except FileNotFoundError:
            return {}
        except BadCheckpoint as error:
            logger.warning("%s; it is written anew", error)
            return {}

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        # Not known while it is being written: a write that fails may have happened all the same.
        self._checkpoints.pop(name, None)
        self._disk.write_atomically(join(self.path, name), encode_offsets(offsets))
        self._checkpoints[name] = offsets
        self._written.add(name)

    def has_checkpointed(self, name: str, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether this process has written exactly this before. Does not block."""
        return name in self._written and self._checkpoints.get(name) == offsets

    def may_be_checkpointed(self, topic_partition: TopicPartition) -> bool:
        """Whether a checkpoint has an entry for the partition, or nobody has looked. Does not block."""
        known = self._checkpoints
        return any(name not in known or topic_partition in known[name] for name in CHECKPOINTS)

    def known_checkpoint(self, name: str) -> Mapping[TopicPartition, int]:
        """What the file says, read only where this process has not written it yet."""
        if name not in self._checkpoints:
            self._checkpoints[name] = self.read_checkpoint(name)
        return self._checkpoints[name]


class PreferredDirectories:
    """Where logs should be made that do not exist yet. Bounded, as anyone may ask: the oldest wish goes first."""

    def __init__(self) -> None:
        self._wishes: dict[TopicPartition, LogDirectory] = {}

    def add(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        self._wishes.pop(topic_partition, None)
        self._wishes[topic_partition] = directory
        if len(self._wishes) > _MAX_WISHES:
            del self._wishes[next(iter(self._wishes))]

    def take(self, topic_partition: TopicPartition) -> LogDirectory | None:
        return self._wishes.pop(topic_partition, None)
