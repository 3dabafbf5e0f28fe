"""What `ottla consume` says while it writes nothing out: where it begins, and why nothing comes."""

import contextlib
import json
import threading
from collections.abc import Iterator

import pytest
from tests.unit.cli.command_line import CommandLine

from ottla import Admin, Consumer
from ottla.cli import reading_notes
from ottla.cli.output import Output
from ottla.cli.running import CommandFailed
from ottla.testing import TestBroker

FAILED = 1


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


@pytest.fixture
def written(broker: TestBroker, topic: str) -> str:
    """A topic with a partition that has three records."""
    broker.create_topic(topic)
    for value in ("a", "b", "c"):
        broker.produce(topic, value)
    return topic


def delete_before(broker: TestBroker, topic: str, offset: int) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({(topic, 0): offset}).raise_for_errors()


def test_following_says_that_it_begins_at_the_end(ottla: CommandLine, written: str) -> None:
    done = ottla("consume", written, "--follow", "--idle", "0.2")
    assert (done.out, done.err) == ("", f"reading {written} from the end: --from beginning reads what is there\n")
    for chosen in (("--from", "beginning"), ("--last", "3")):
        done = ottla("consume", written, "--follow", "--idle", "0.2", *chosen)
        assert (done.out, done.err) == ("a\nb\nc\n", "")
    noted = ottla("consume", written, "--follow", "--idle", "0.2", "--json").err
    assert json.loads(noted)["note"].startswith(f"reading {written} from the end")


def test_a_new_group_says_that_it_begins_at_the_end(ottla: CommandLine, written: str) -> None:
    group = ("--group", f"group-{written}", "--idle", "0")
    done = ottla("consume", written, *group)
    told = (
        f"group group-{written} has no offset yet: reading {written} from the end: --from beginning reads what is there"
    )
    assert (done.out, done.err) == ("", f"{told}\n")
    assert ottla("consume", written, *group).err == ""
    for place in ("beginning", "earliest"):
        done = ottla("consume", written, "--group", f"{place}-{written}", "--idle", "0", "--from", place)
        assert (done.out, done.err) == ("a\nb\nc\n", "")


def test_offsets_that_are_not_there(ottla: CommandLine, broker: TestBroker, written: str) -> None:
    done = ottla("consume", written, "--from", "9")
    nearest = "reading begins at the nearest one"
    assert done.err == f"offset 9 is out of range: {written}-0 has 0 to 2; {nearest}\n"
    delete_before(broker, written, 2)
    done = ottla("consume", written, "--from", "1", "--until", "7", "--idle", "0.2")
    assert done.out == "c\n"
    assert done.err.splitlines() == [
        f"offset 1 is out of range: {written}-0 has 2 to 2; {nearest}",
        f"reading waits until offset 7 is there: {written}-0 has 2 to 2",
    ]
    assert ottla("consume", written, "--from", "2", "--until", "3").err == ""


def test_offsets_of_a_group_that_are_not_there(ottla: CommandLine, broker: TestBroker, written: str) -> None:
    group = f"group-{written}"
    assert ottla("consume", written, "--group", group, "--from", "beginning", "--count", "1").out == "a\n"
    delete_before(broker, written, 2)
    done = ottla("consume", written, "--group", group, "--from", "beginning", "--idle", "0")
    assert done.out == "c\n"
    out_of_range = f"offsets of group {group} are out of range: {written}-0 at 1, it has 2 to 2"
    assert done.err == f"{out_of_range}; reading goes on from the beginning\n"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_without_partitions(
    ottla: CommandLine, broker: TestBroker, written: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_notes, "POLLS_WITHOUT_PARTITIONS", 1)
    _end_with_note(monkeypatch, "no partition of")
    group = f"group-{written}"
    with _member(broker, written, group, protocol):
        done = ottla("consume", written, "--group", group, "-X", f"group.protocol={protocol}", code=FAILED)
    assert f"no partition of {written} is assigned to this member of group {group}: other members read" in done.err


def _end_with_note(monkeypatch: pytest.MonkeyPatch, beginning: str) -> None:
    """The command ends when it says so, and not before."""
    tell = Output.tell

    def tell_and_end(output: Output, text: str) -> None:
        tell(output, text)
        if text.startswith(beginning):
            raise CommandFailed("it was said")

    monkeypatch.setattr(Output, "tell", tell_and_end)


@contextlib.contextmanager
def _member(broker: TestBroker, topic: str, group: str, protocol: str) -> Iterator[None]:
    """The first of the group in any order, so that it keeps the partition. It polls, so that it joins rebalances."""
    settings: dict[str, object] = {"client_id": "a", "group_id": group, "group_protocol": protocol}
    settings |= {"heartbeat_interval_ms": "100"} if protocol == "classic" else {}
    is_over = threading.Event()
    with Consumer(broker.bootstrap_servers, config=settings) as other:
        other.subscribe([topic])
        while not other.assignment:
            other.poll(0.1)

        def poll() -> None:
            while not is_over.is_set():
                other.poll(0.1)

        polling = threading.Thread(target=poll)
        polling.start()
        try:
            yield
        finally:
            is_over.set()
            polling.join()


def test_a_topic_that_is_deleted_while_it_is_read(
    ottla: CommandLine, broker: TestBroker, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays deleted: reading does not make it again."""
    monkeypatch.setattr(reading_notes, "CHECK_SECONDS", 0.0)
    tell_start = reading_notes.tell_start

    def delete(output: Output, topic: str) -> None:
        tell_start(output, topic)
        with Admin(broker.bootstrap_servers) as admin:
            admin.delete_topics(topic, wait=True).raise_for_errors()

    monkeypatch.setattr(reading_notes, "tell_start", delete)
    gone = f"topic {written} does not exist any more: waiting for it (Ctrl-C ends)"
    _end_with_note(monkeypatch, gone)
    assert gone in ottla("consume", written, "--follow", code=FAILED).err
    with Admin(broker.bootstrap_servers) as admin:
        assert written not in [topic.name for topic in admin.list_topics()]
