"""The small files of a broker and the nodes of its store, one format for each value of the first byte.

What must hold: they are read, or refused with the error that their reader promises. What was read is written and read
again as the same, where there is a writer.
"""

from collections.abc import Callable, Hashable, Iterable

from tests.fuzz.target import Finding, PlainTarget

from ottla.cluster import registry
from ottla.cluster.image import BrokerRegistration, Endpoint, PartitionImage
from ottla.cluster.registry import ControllerRecord, CorruptNode
from ottla.coordination.store import Node
from ottla.log import checkpoints
from ottla.log.checkpoints import BadCheckpoint
from ottla.log.directory import CLEAN_SHUTDOWN, CLEANER_CHECKPOINT, META_PROPERTIES, LogDirectory
from ottla.log.files import TopicPartition
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.offset_index import CorruptIndex, OffsetIndex
from ottla.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from ottla.log.producer_state import ProducerEntry, StoredBatch
from ottla.log.time_index import TimeIndex
from ottla.protocol.uuids import uuid_to_text
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.runtime import SeededIds

SEGMENT_BYTES = 1 << 16
NODE_ID = 1
REFUSALS = (BadCheckpoint, CorruptSnapshot, CorruptIndex, CorruptNode, OSError)


def _again(first: object, second: object) -> None:
    if first != second:
        raise Finding(f"{first} was written and {second} read")


def _offsets(data: bytes) -> None:
    found = checkpoints.decode_offsets("name", data)
    _again(found, checkpoints.decode_offsets("name", checkpoints.encode_offsets(found)))


def _epochs(data: bytes) -> None:
    entries = LeaderEpochs(checkpoints.decode_epochs("name", data)).entries()
    _again(entries, checkpoints.decode_epochs("name", checkpoints.encode_epochs(entries)))


def _partition_metadata(data: bytes) -> None:
    topic_id = checkpoints.decode_partition_metadata("name", data)
    _again(topic_id, checkpoints.decode_partition_metadata("name", checkpoints.encode_partition_metadata(topic_id)))


def _snapshot(data: bytes) -> None:
    written = encode_snapshot(decode_snapshot(data))
    _again(written, encode_snapshot(decode_snapshot(written)))


def _offset_index(data: bytes) -> None:
    index = OffsetIndex.from_bytes(data, SEGMENT_BYTES)
    for offset in (0, 1, 1000, 2**31 - 1):
        index.lookup(offset)
        index.lookup_around(offset)
    _again(data, index.to_bytes())


def _time_index(data: bytes) -> None:
    index = TimeIndex.from_bytes(data)
    for timestamp in (-1, 0, 1000, 2**63 - 1):
        index.lookup(timestamp)
    _again(data, index.to_bytes())


def _directory(name: str) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        disk = MemoryDisk()
        disk.make_directory("/data")
        disk.write_atomically(f"/data/{name}", data)
        directory = LogDirectory(disk, "/data")
        directory.open(NODE_ID, SeededIds(1))
        directory.join_cluster(directory.cluster_id or "a-cluster")
        directory.read_checkpoint(CLEANER_CHECKPOINT)
        directory.close()
        # Whatever was found, the next start finds it as this one left it.
        again = LogDirectory(disk, "/data")
        again.open(NODE_ID, SeededIds(2))
        _again((directory.cluster_id, directory.directory_id), (again.cluster_id, again.directory_id))

    return read


def _node(decode: Callable[[Node], object]) -> Callable[[bytes], None]:
    return lambda data: _again(decode(Node("/a", data, 0, 1, 1, False)), decode(Node("/a", data, 0, 1, 1, False)))


FORMATS: tuple[Callable[[bytes], None], ...] = (
    _offsets,
    _epochs,
    _partition_metadata,
    _snapshot,
    _offset_index,
    _time_index,
    _directory(META_PROPERTIES),
    _directory(CLEAN_SHUTDOWN),
    _directory(CLEANER_CHECKPOINT),
    _node(registry.decode_broker),
    _node(registry.decode_topic),
    _node(registry.decode_state),
    _node(registry.decode_configs),
    _node(registry.decode_controller),
    _node(registry.decode_admitted),
    _node(registry.decode_cluster_id),
)


def _samples() -> list[list[bytes]]:
    """Files as a broker writes them, in the order of the formats."""
    entry = ProducerEntry(7, 1, 0, 1000, -1, [StoredBatch(0, 4, 10, 14, 1000)])
    text = uuid_to_text(bytes(range(16)))
    broker = BrokerRegistration(1, (Endpoint("PLAINTEXT", "host", 9092),), "a", 5, bytes(range(16)))
    partition = PartitionImage(0, 1, 0, (1,), (1,), 0)
    return [
        [checkpoints.encode_offsets({TopicPartition("a", 0): 5, TopicPartition("b-c", 3): 0}), b"0\n0\n"],
        [checkpoints.encode_epochs([(0, 0), (3, 17)]), b"0\n1\n-1 -5\n"],
        [checkpoints.encode_partition_metadata(bytes(range(16)))],
        [encode_snapshot([entry]), encode_snapshot([])],
        [bytes.fromhex("00000003 00000064 00000009 000000c8")],
        [bytes.fromhex("0000018bcfe56800 00000003 0000018bcfe56801 00000009")],
        [checkpoints.encode_properties({"version": "1", "node.id": "1", "cluster.id": "c", "directory.id": text})],
        [b'{"version":0,"brokerEpoch":5}'],
        [checkpoints.encode_offsets({TopicPartition("a", 0): 5})],
        [registry.encode_broker(broker)],
        [registry.encode_topic(bytes(range(16)), [[1], [2]])],
        [registry.encode_state(bytes(range(16)), 1, [partition])],
        [registry.encode_configs({"retention.ms": "1"})],
        [registry.encode_controller(ControllerRecord(1, 2, 3))],
        [registry.encode_admitted({1: 2})],
        [registry.encode_cluster_id("cluster")],
    ]


class SmallFilesTarget(PlainTarget):
    name = "small-files"
    longest_bytes = 1024

    def seeds(self) -> list[bytes]:
        return [bytes([number]) + content for number, contents in enumerate(_samples()) for content in contents]

    def run(self, data: bytes) -> Iterable[Hashable]:
        if data:
            number = data[0] % len(FORMATS)
            try:
                FORMATS[number](data[1:])
            except REFUSALS as error:
                return {(number, type(error))}
        return ()
