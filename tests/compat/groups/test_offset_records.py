"""What Ottla writes into `__consumer_offsets` is what Apache Kafka writes, and either loads the other's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_thread import BrokerThread
from tests.peers.java import run_java
from tests.peers.kafka import KafkaBroker
from tests.peers.paths import KAFKA_LIBS, PeerMissing, require_libs
from tests.unit.broker.api.offset_questions import (
    commit,
    delete_groups,
    delete_offsets,
    fetch_group,
    fetched,
    find_coordinator,
    list_groups,
)
from tests.unit.broker.api.questions import create_topic, fetch
from tests.wire_client import WireClient

from ottla.groups.entries import GROUP_RECORD_TYPES, OffsetCommitValue
from ottla.ledger import Entry
from ottla.protocol.uuids import ZERO_UUID
from ottla.records import Record, read_records

pytestmark = pytest.mark.timeout(120)

ONE_PARTITION = {"offsets.topic.num.partitions": "1"}
GROUP_TOPIC = "__consumer_offsets"
SEGMENT = "00000000000000000000.log"
GROUPS = ("plain", "trimmed", "again")


def act(client: WireClient) -> None:
    """Everything that writes records of offsets, short of transactions and time."""
    create_topic(client, "t", partitions=3)
    for group in (*GROUPS, "deleted"):
        find_coordinator(client, group)
        commit(client, group, {"t": {0: 10, 1: 20}})
    commit(client, "plain", {"t": {2: 2**40}}, version=2)
    commit(client, "plain", {"t": {1: 21}}, version=4, retention_time_ms=3_600_000)
    delete_offsets(client, "trimmed", {"t": [0, 2]})
    delete_groups(client, "deleted", "again")
    commit(client, "again", {"t": {0: 11}})


def stored(client: WireClient) -> list[Record]:
    found: list[Record] = []
    while True:
        piece = fetch(client, GROUP_TOPIC, len(found)).records
        if not piece:
            return found
        found += read_records(piece)


def said(record: Record) -> tuple[bytes | None, bytes | None]:
    """Key and value without times of now and ids; the record must be written as its version says, to the last byte."""
    entry = GROUP_RECORD_TYPES.decode(record.key, record.value)
    assert entry.encode() == (record.key, record.value)
    if isinstance(entry.value, OffsetCommitValue):
        entry.value.commit_timestamp = 0
        entry.value.topic_id = bytes(15) + bytes((entry.value.topic_id != ZERO_UUID,))
        entry.value.expire_timestamp = 0 if entry.value.expire_timestamp >= 0 else -1
    return Entry(*entry).encode()


def offsets(client: WireClient) -> dict[str, dict[tuple[str, int], tuple[int, int, str | None]]]:
    return {
        group: {
            place: (part.committed_offset, part.committed_leader_epoch, part.metadata)
            for place, part in fetched(fetch_group(client, group, None)).items()
        }
        for group in sorted(list_groups(client))
    }


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    try:
        broker = KafkaBroker(
            tmp_path_factory.mktemp("kafka"), heap="256m", properties=dict(ONE_PARTITION), short_lived=True
        )
    except PeerMissing as missing:
        pytest.skip(str(missing))
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def test_both_write_the_same_records_and_load_them(kafka: KafkaBroker, tmp_path: Path) -> None:
    assert kafka.port is not None
    ottla = BrokerThread(tmp_path / "ottla", ONE_PARTITION)
    with ottla, WireClient(kafka.port) as theirs, WireClient(ottla.port) as ours:
        for client in (theirs, ours):
            act(client)
        assert [said(record) for record in stored(ours)] == [said(record) for record in stored(theirs)]
        expected = offsets(theirs)
        assert offsets(ours) == expected
        assert expected["plain"]["t", 2][0] == 2**40
        described = run_java(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            ["--bootstrap-server", f"127.0.0.1:{ottla.port}", "--describe", "--group", "plain"],
            require_libs(KAFKA_LIBS, "kafka"),
        ).stdout
        assert {tuple(line.split()[:4]) for line in described.splitlines() if line.startswith("plain")} == {
            ("plain", "t", str(index), str(offset)) for index, offset in enumerate((10, 21, 2**40))
        }
    kafka.stop()
    heir = BrokerThread(tmp_path / "heir", ONE_PARTITION)
    with heir, WireClient(heir.port) as client:
        find_coordinator(client, "plain")
    place = tmp_path / "heir" / f"{GROUP_TOPIC}-0"
    for path in place.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    shutil.copy(kafka.data_directory / f"{GROUP_TOPIC}-0" / SEGMENT, place / SEGMENT)
    heir = BrokerThread(tmp_path / "heir", ONE_PARTITION)
    with heir, WireClient(heir.port) as client:
        find_coordinator(client, "plain")
        assert offsets(client) == expected
