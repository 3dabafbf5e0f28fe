"""A broker with records in two log directories, and a reader that goes on behind what does not read."""

from __future__ import annotations

import random
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.unit.broker.api.questions import create_topic, fetch, new_producer_id, produce
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.records import BatchHeader, Codec, CorruptRecord, Record, build_batch, check_crc, read_header, read_records
from ottla.testing import TestBroker

HURT, BESIDE, ELSEWHERE = "hurt", "beside", "elsewhere"
NOW_MS = 1_700_000_000_000
LATEST, EARLIEST = -1, -2
BATCHES = 14
RECORDS_IN_A_BATCH = 2
ROUNDS = 2000

Values = dict[int, bytes | None]


@dataclass
class Kind:
    """What the logs are like: how they are written, and what of them is on the device."""

    codec: Codec = Codec.NONE
    configs: dict[str, str] = field(default_factory=dict)
    flushed: bool = True

    def topic_configs(self) -> dict[str, str]:
        flushing = {"flush.messages": "1"} if self.flushed else {}
        return {"internal.segment.bytes": "1000", "index.interval.bytes": "200", **flushing, **self.configs}


@dataclass
class Found:
    """What a reader gets of one partition: the records, and the offsets where it got none."""

    values: Values = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)
    start: int = 0
    end: int = 0


class Scene:
    """`HURT` has a partition for each thing that is done to one; `BESIDE` is in the same directory."""

    def __init__(self, place: Path, partitions: int, kind: Kind | None = None) -> None:
        self.place = place
        self.one, self.two = place / "one", place / "two"
        self.partitions = partitions
        self.kind = kind or Kind()
        self.stored: dict[tuple[str, int], Values] = {}
        self.producer_id = -1
        self._broker: TestBroker | None = None

    def copy_to(self, place: Path) -> Scene:
        """The same, stopped, somewhere else."""
        shutil.copytree(self.place, place)
        copied = Scene(place, self.partitions, self.kind)
        copied.stored = {name: dict(values) for name, values in self.stored.items()}
        copied.producer_id = self.producer_id
        return copied

    # The broker.

    @property
    def broker(self) -> TestBroker:
        assert self._broker is not None, "the broker is not there"
        return self._broker

    def start(self) -> Self:
        properties = {
            "log.dirs": f"{self.one},{self.two}",
            "log.flush.offset.checkpoint.interval.ms": "5",
            "replica.high.watermark.checkpoint.interval.ms": "5",
            "log.retention.check.interval.ms": "86400000",
            "log.cleaner.backoff.ms": "3600000",
        }
        self._broker = TestBroker(properties, directory=self.one)
        try:
            self._broker.start()
        except BaseException:
            self.end()
            raise
        return self

    def end(self, *, killed: bool = False) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            if killed:
                broker.kill()
            broker.close()

    def connect(self) -> WireClient:
        return WireClient(self.broker.port)

    # Writing.

    def fill(self) -> None:
        with self.connect() as client:
            configs = self.kind.topic_configs()
            create_topic(client, HURT, self.partitions, configs)
            create_topic(client, BESIDE, 2, configs)
            create_topic(client, ELSEWHERE, 2, configs)
            self.producer_id = new_producer_id(client)
            for topic, count in ((HURT, self.partitions), (BESIDE, 2), (ELSEWHERE, 2)):
                for partition in range(count):
                    for number in range(BATCHES):
                        self.write(client, topic, partition, number)

    def write(self, client: WireClient, topic: str, partition: int, number: int, *, idempotent: bool = True) -> int:
        """One batch; its answer must be good."""
        stored = self.stored.setdefault((topic, partition), {})
        values = [b"%s-%d %d %d " % (topic.encode(), partition, number, index) + b"x" * 40 for index in range(2)]
        records = [
            Record(index, NOW_MS + 10 * number + index, b"key-%d-%d" % (number, index), value, [])
            for index, value in enumerate(values)
        ]
        producer_id, sequence = (self.producer_id, number * RECORDS_IN_A_BATCH) if idempotent else (-1, -1)
        batch = build_batch(
            records,
            codec=self.kind.codec,
            producer_id=producer_id,
            producer_epoch=0 if idempotent else -1,
            base_sequence=sequence,
        )
        answer = produce(client, topic, batch, partition=partition)
        assert answer.error_code == ErrorCode.NONE, (topic, partition, ErrorCode(answer.error_code).name)
        stored.update({answer.base_offset + index: value for index, value in enumerate(values)})
        return answer.base_offset

    def wait_for_recovery_points(self) -> None:
        """Everything is flushed, and both directories say so."""
        for directory in (self.one, self.two):
            path = directory / "recovery-point-offset-checkpoint"
            for _ in range(ROUNDS * 100):
                offsets = re.findall(r"^\S+ \d+ (\d+)$", path.read_text() if path.exists() else "", re.M)
                if offsets and all(int(offset) == BATCHES * RECORDS_IN_A_BATCH for offset in offsets):
                    break
            else:
                raise AssertionError(f"{path} does not say that all is flushed")

    # Reading.

    def read(self, client: WireClient, topic: str, partition: int) -> Found:
        """All that can be read; an offset that cannot is passed over, as a client may do that seeks."""
        found = Found(start=self._offset(client, topic, partition, EARLIEST))
        found.end = end = self._offset(client, topic, partition, LATEST)
        offset = found.start
        while offset < end:
            answer = fetch(client, topic, offset, partition=partition)
            assert answer.error_code in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE), ErrorCode(answer.error_code)
            next_offset = _take(bytes(answer.records or b""), offset, end, found)
            if next_offset == offset:
                found.unreadable.add(offset)
                next_offset += 1
            offset = next_offset
        return found

    def _offset(self, client: WireClient, topic: str, partition: int, place: int) -> int:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=place)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
        ((answer,),) = (each.partitions for each in client.ask(request, ListOffsetsResponse).topics)
        if answer.error_code != ErrorCode.NONE:
            raise Refused(ErrorCode(answer.error_code))
        return answer.offset


class Refused(Exception):
    """A partition cannot be read at all."""


def _take(data: bytes, offset: int, end: int, found: Found) -> int:
    """The good batches at the front of an answer, as a client that checks CRCs takes them; the next offset."""
    position = 0
    while (header := _good_batch(data, position)) is not None:
        if header.last_offset < offset:
            position += header.size_bytes
            continue
        if header.base_offset > end:
            break
        for record in read_records(data[position : position + header.size_bytes]):
            if record.offset >= offset:
                assert record.offset not in found.values, f"offset {record.offset} came twice"
                found.values[record.offset] = record.value
        offset = header.next_offset
        position += header.size_bytes
    return offset


def _good_batch(data: bytes, position: int) -> BatchHeader | None:
    try:
        header = read_header(data, position)
        return header if check_crc(data, position, header) else None
    except (CorruptRecord, ValueError):
        return None


def template(place: Path, partitions: int, kind: Kind, *, killed: bool) -> Scene:
    """A scene whose broker was stopped, or killed when everything was flushed (or not, if the kind says so)."""
    scene = Scene(place, partitions, kind).start()
    try:
        scene.fill()
        if killed and kind.flushed:
            scene.wait_for_recovery_points()
    finally:
        scene.end(killed=killed)
    return scene


def dice_for(*what: object) -> random.Random:
    return random.Random("/".join(map(str, what)))
