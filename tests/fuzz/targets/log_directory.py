"""The files of a partition as a start may find them: after a crash, from another broker, from a failing disk.

An input is a list of pieces: one byte for the file, two for its length, then what is in it. What must hold: the log is
loaded, or its directory is refused with an OSError. A log that was loaded after a crash is whole, but for damage below
its recovery point, which stays: every batch reads, offsets rise, CRCs fit; it takes an append; and closing and loading
it again changes nothing.
"""

import logging
import random
import struct
from collections.abc import Hashable, Iterable

from tests.fuzz.bytes_mutations import havoc
from tests.fuzz.frames import batch_with_changes
from tests.fuzz.target import Finding, PlainTarget
from tests.fuzz.virtual_loop import VirtualLoop
from tests.unit.log.support import START_MS, TOPIC, TOPIC_ID, Rig, append, batch_of

from ottla.log.checkpoints import encode_partition_metadata
from ottla.log.directory import CLEAN_SHUTDOWN, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, REPLICATION_CHECKPOINT
from ottla.log.log import Log
from ottla.log.producer_snapshot import encode_snapshot
from ottla.log.producer_state import ProducerEntry, StoredBatch
from ottla.protocol.errors import KafkaError
from ottla.records import (
    ControlType,
    CorruptRecord,
    EndTransactionMarker,
    Record,
    build_batch,
    build_end_transaction,
    inspect_batches,
)

PIECE_HEAD = struct.Struct(">BH")
READ_BYTES = 1 << 16
PARTITION = f"/data/{TOPIC}-0"
SECOND_BASE_OFFSET = 4
FILES = (
    f"{PARTITION}/{0:020}.log",
    f"{PARTITION}/{0:020}.index",
    f"{PARTITION}/{0:020}.timeindex",
    f"{PARTITION}/{SECOND_BASE_OFFSET:020}.log",
    f"{PARTITION}/{SECOND_BASE_OFFSET:020}.index",
    f"{PARTITION}/{SECOND_BASE_OFFSET:020}.snapshot",
    f"{PARTITION}/{0:020}.snapshot",
    f"{PARTITION}/leader-epoch-checkpoint",
    f"{PARTITION}/partition.metadata",
    f"{PARTITION}/{0:020}.log.swap",
    f"{PARTITION}/{0:020}.log.cleaned",
    f"/data/{RECOVERY_POINT_CHECKPOINT}",
    f"/data/{LOG_START_CHECKPOINT}",
    f"/data/{REPLICATION_CHECKPOINT}",
    f"/data/{CLEAN_SHUTDOWN}",
)
CLEAN = FILES.index(f"/data/{CLEAN_SHUTDOWN}")
LOGS = tuple(number for number, name in enumerate(FILES) if name.endswith(".log"))

Pieces = list[tuple[int, bytes]]


def pieces_of(data: bytes) -> Pieces:
    pieces: Pieces = []
    position = 0
    while len(data) - position >= PIECE_HEAD.size:
        number, size = PIECE_HEAD.unpack_from(data, position)
        position += PIECE_HEAD.size
        pieces.append((number % len(FILES), data[position : position + size]))
        position += size
    return pieces


def join_pieces(pieces: Pieces) -> bytes:
    return b"".join(PIECE_HEAD.pack(number, len(content)) + content for number, content in pieces)


class LogDirectoryTarget(PlainTarget):
    name = "log-directory"
    longest_bytes = 4096

    def __init__(self) -> None:
        self._loop = VirtualLoop()
        logging.getLogger("ottla").propagate = False

    def seeds(self) -> list[bytes]:
        first = b"".join(_stored(offset) for offset in range(SECOND_BASE_OFFSET))
        second = _stored(SECOND_BASE_OFFSET) + _stored(SECOND_BASE_OFFSET + 1)
        commit = EndTransactionMarker(ControlType.COMMIT, 0)
        marker = build_end_transaction(commit, timestamp=START_MS, base_offset=6, producer_id=7, producer_epoch=0)
        entry = ProducerEntry(7, 0, 0, START_MS, -1, [StoredBatch(0, 0, 3, 3, START_MS)])
        segments = [(LOGS[0], first), (LOGS[1], second)]
        snapshot = (FILES.index(f"{PARTITION}/{SECOND_BASE_OFFSET:020}.snapshot"), encode_snapshot([entry]))
        epochs = (FILES.index(f"{PARTITION}/leader-epoch-checkpoint"), b"0\n2\n0 0\n3 4\n")
        bad_epochs = (epochs[0], b"0\n1\n-1 -5\n")
        metadata = (FILES.index(f"{PARTITION}/partition.metadata"), encode_partition_metadata(TOPIC_ID))
        points = [(number, f"0\n1\n{TOPIC} 0 4\n".encode()) for number in range(CLEAN - 3, CLEAN)]
        clean = (CLEAN, b'{"version":0,"brokerEpoch":-1}')
        swap = (FILES.index(f"{PARTITION}/{0:020}.log.swap"), first)
        return [
            join_pieces(pieces)
            for pieces in (
                segments,
                [(LOGS[0], first + second + marker)],
                [*segments, snapshot, epochs, metadata],
                [*segments, *points, epochs],
                [*segments, *points, snapshot, clean],
                [*segments, bad_epochs],
                [(LOGS[0], first[:-5]), swap],
            )
        ]

    def run(self, data: bytes) -> Iterable[Hashable]:
        return self._loop.run_until_complete(self._load(pieces_of(data)))

    async def _load(self, pieces: Pieces) -> set[Hashable]:
        rig = Rig()
        rig.disk.make_directory(PARTITION)
        for number, content in pieces:
            rig.disk.write_atomically(FILES[number], content)
        is_clean = any(number == CLEAN for number, _ in pieces)
        try:
            log = await rig.open()
        except (OSError, KafkaError) as error:
            return {type(error).__name__}
        if is_clean or rig.directory.damaged_bytes:
            self._try_to_read(log)
        else:
            await self._check(rig, log)
        await rig.manager.shutdown()
        return {log.log_end_offset > log.log_start_offset, len(log.segments)}

    async def _check(self, rig: Rig, log: Log) -> None:
        before = content_of(log)
        try:
            await append(log, batch_of([b"one more"]), leader_epoch=max(log.leader_epochs.latest_epoch, 0))
        except KafkaError:
            return
        after = content_of(log)
        if not after.startswith(before) or len(after) == len(before):
            raise Finding("an append changed what was there")
        epochs, end_offset = log.leader_epochs.entries(), log.log_end_offset
        log = await rig.restart()
        if (content_of(log), log.leader_epochs.entries(), log.log_end_offset) != (after, epochs, end_offset):
            raise Finding("a restart changed the log")

    @staticmethod
    def _try_to_read(log: Log) -> None:
        """Where files are believed, or damage stays, reading may fail, and must not go round in circles."""
        offset = log.log_start_offset
        for _ in range(1000):
            try:
                found = log.read(offset, READ_BYTES, up_to_offset=log.log_end_offset)
                headers = [] if found is None else inspect_batches(found.read(), True)
            except (KafkaError, OSError, CorruptRecord):
                return
            if not headers:
                return
            offset = max(offset, headers[-1].last_offset) + 1
        raise Finding("the log never ends")

    def mutate(self, dice: random.Random, data: bytes, other: bytes) -> bytes | None:
        pieces, others = pieces_of(data), pieces_of(other)
        chance = dice.random()
        if not pieces or (chance < 0.2 and others):
            pieces += others
        elif chance < 0.3:
            del pieces[dice.randrange(len(pieces))]
        elif chance < 0.4:
            position = dice.randrange(len(pieces))
            pieces[position] = (dice.randrange(len(FILES)), pieces[position][1])
        else:
            position = dice.randrange(len(pieces))
            number, content = pieces[position]
            change = batch_with_changes if number in LOGS and len(content) > 61 and dice.random() < 0.7 else None
            pieces[position] = (number, havoc(dice, content, b"") if change is None else change(dice, content))
        return join_pieces(pieces)


def _stored(offset: int) -> bytes:
    record = Record(offset, START_MS + offset, b"key", b"value", [])
    return build_batch(
        [record], base_offset=offset, leader_epoch=3, producer_id=7, producer_epoch=0, base_sequence=offset
    )


def content_of(log: Log) -> bytes:
    pieces: list[bytes] = []
    offset = log.log_start_offset
    while (found := log.read(offset, READ_BYTES, up_to_offset=log.log_end_offset)) is not None:
        data = bytes(found.read())
        pieces.append(data)
        headers = inspect_batches(data)
        for header in headers:
            if header.last_offset < offset:
                raise Finding(f"offset {header.last_offset} follows {offset}")
            offset = header.last_offset + 1
        if not headers:
            raise Finding(f"nothing can be read at offset {offset} of {log.log_end_offset}")
    return b"".join(pieces)
