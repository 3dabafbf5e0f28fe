"""Files change hands between running brokers: what Ottla wrote is served by Apache Kafka, and the other way round.

One broker of each kind is written to by real clients, killed, and stopped; its files are kept from both moments.
Kafka's DumpLogSegments reads all that Ottla left. Then each is given the other's files and asked for every record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.compat.clients.model import Stored
from tests.compat.log.broker_files import (
    COMPACTED_OFFSETS,
    QUICK,
    ROUND_RECORDS,
    ROUNDS,
    TOPICS,
    TRIMMED_TO,
    copy_of,
    create_topics,
    give,
    producers,
    read_everything,
    write_everything,
)
from tests.compat.log.test_dump_log import dump
from tests.conftest import start_broker
from tests.peers.paths import KAFKA_LIBS, KAFKA_VERSION, PeerMissing, require_libs
from tests.peers.process import ServerProcess

pytestmark = pytest.mark.timeout(300)

INDEX_ENTRY_BYTES, TIME_ENTRY_BYTES = 8, 12
COMPLAINT = re.compile(r"(?i)mismatch|isvalid: false|out of order|corrupt|could not|exception|not found|larger than")


@dataclass(frozen=True)
class Written:
    """What a broker left: killed in the middle, and stopped after it had recovered; and what it served then."""

    killed: Path
    stopped: Path
    records: dict[str, list[Stored]]
    producers: set[tuple[object, ...]]
    broker: ServerProcess

    def files(self, how: str) -> Path:
        return self.killed if how == "killed" else self.stopped


@pytest.fixture(scope="module")
def libs() -> Path:
    try:
        return require_libs(KAFKA_LIBS, f"kafka-{KAFKA_VERSION}")
    except PeerMissing as missing:
        pytest.skip(str(missing))


def written_by(target: str, place: Path) -> Iterator[Written]:
    broker = start_broker(target, place / target, None, QUICK)
    try:
        create_topics(broker)
        write_everything(broker)
        records, states = read_everything(broker), producers(broker)
        broker.kill()
        killed = copy_of(broker.data_directory, place / f"{target}-killed")
        broker.start()
        assert (read_everything(broker), producers(broker)) == (records, states)
        broker.stop()
        stopped = copy_of(broker.data_directory, place / f"{target}-stopped")
        yield Written(killed, stopped, records, states, broker)
    finally:
        broker.kill()


@pytest.fixture(scope="module")
def ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    yield from written_by("ottla", tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def kafka(libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    yield from written_by("kafka", tmp_path_factory.mktemp("files"))


def found(written: Written, topic: str, *suffixes: str) -> list[Path]:
    """Files of the topic as the stop left them; of the killed broker, the closed segments."""
    active = max(path.stem for path in (written.killed / f"{topic}-0").glob("*.log"))
    stopped = [path for path in (written.stopped / f"{topic}-0").iterdir() if path.suffix in suffixes]
    killed = [path for path in (written.killed / f"{topic}-0").iterdir() if path.suffix in suffixes]
    return sorted([*stopped, *(path for path in killed if path.stem < active or path.suffix == ".log")])


def test_what_was_written_is_worth_reading(ottla: Written) -> None:
    """Several segments, filled indexes, snapshots, holes, a late start: else the other tests would prove little."""
    codecs = ottla.stopped / "codecs-0"
    assert len(list(codecs.glob("*.log"))) > 5
    assert sum(path.stat().st_size >= 2 * INDEX_ENTRY_BYTES for path in codecs.glob("*.index")) >= 4
    assert sum(path.stat().st_size >= TIME_ENTRY_BYTES for path in codecs.glob("*.timeindex")) >= 4
    assert max(path.stat().st_size for path in codecs.glob("*.snapshot")) > 100
    assert [record.offset for record in ottla.records["codecs"]] == list(range(ROUNDS * ROUND_RECORDS))
    assert [record.offset for record in ottla.records["compacted"]] == COMPACTED_OFFSETS
    assert ottla.records["trimmed"][0].offset == TRIMMED_TO
    assert ottla.records["retained"][0].offset > 0
    assert len(ottla.producers) > 5


def test_dump_log_segments_reads_every_file(ottla: Written, libs: Path) -> None:
    suffixes = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")
    paths = [path for topic in TOPICS for path in found(ottla, topic, *suffixes)]
    text = dump(libs, paths, "--deep-iteration")
    assert not COMPLAINT.search(text), COMPLAINT.search(text)
    records = sum(map(len, ottla.records.values()))
    # Segments whose records are partly deleted are kept whole, so there may be more than clients are given.
    assert len(re.findall(r"^\| offset: ", text, re.M)) >= 2 * records
    assert {"none", "gzip", "snappy", "lz4", "zstd"} <= set(re.findall(r"compresscodec: (\w+)", text))
    assert len(set(re.findall(r"^producerId: (\d+) ", text, re.M))) >= len(ottla.producers)


def test_offsets_follow_each_other_where_nothing_was_cleaned(ottla: Written, libs: Path) -> None:
    text = dump(libs, found(ottla, "codecs", ".log"), "--deep-iteration")
    # The tool begins to count at -1 in every file.
    assert {before for before, _ in re.findall(r"^  (-?\d+) is followed by (\d+)$", text, re.M)} <= {"-1"}


@pytest.mark.parametrize("flag", ["--index-sanity-check", "--verify-index-only"])
def test_indexes_are_right(ottla: Written, libs: Path, flag: str) -> None:
    paths = [path for topic in TOPICS for path in found(ottla, topic, ".index", ".timeindex")]
    text = dump(libs, paths, flag)
    assert not COMPLAINT.search(text), COMPLAINT.search(text)
    if flag == "--index-sanity-check":
        assert text.count("passed sanity check") + text.count("is empty") == len(paths)


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_kafkas_files_are_served_here(kafka: Written, tmp_path: Path, how: str) -> None:
    broker = start_broker("ottla", tmp_path, None, QUICK)
    try:
        create_topics(broker)
        broker.stop()
        give(kafka.files(how), broker.data_directory)
        indexes = {
            path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
            for path in broker.data_directory.glob("*/*index")
        }
        broker.start()
        assert read_everything(broker) == kafka.records
        assert producers(broker) == kafka.producers
        if how == "stopped":
            untouched = {
                path: (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) for path in closed(indexes)
            }
            assert len(untouched) > 10
            assert untouched == {path: indexes[path] for path in untouched}
        broker.stop()
    finally:
        broker.kill()


def closed(paths: dict[Path, tuple[bytes, int, int]]) -> list[Path]:
    """Those of segments that are not the last of their partition."""
    last = {path.parent: max(path.parent.glob("*.log")).stem for path in paths}
    return [path for path in paths if path.stem < last[path.parent]]


def test_our_files_are_served_by_kafka(ottla: Written, kafka: Written) -> None:
    """As a stop left them, after a kill and a recovery. That Kafka's log recovers them itself is in test_kafka_log."""
    broker = kafka.broker
    give(ottla.stopped, broker.data_directory)
    broker.start()
    try:
        assert read_everything(broker) == ottla.records
        assert producers(broker) == ottla.producers
        assert "Found a corrupted index" not in broker.log_since_start()
    finally:
        broker.stop()
