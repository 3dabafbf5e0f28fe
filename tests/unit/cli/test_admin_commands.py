"""`ottla topics`, `configs`, `groups` and `cluster` as a user meets them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.peers.paths import REPOSITORY
from tests.unit.cli.command_line import CommandLine

from ottla.testing import TestBroker

FAILED, WRONG = 1, 2


def test_a_topic_from_its_creation_to_its_end(ottla: CommandLine, topic: str) -> None:
    assert ottla("topics", "create", topic, "-p", "3", "--set", "retention.ms=1000").err == ""
    (listed,) = (line for line in ottla("topics", "list", "--json").lines if line["topic"] == topic)
    assert (listed["partitions"], listed["replicas"], listed["internal"]) == (3, 1, False)
    (described,) = ottla("topics", "describe", topic, "--json").lines
    assert described["configs"] == {"retention.ms": "1000"}
    assert [(one["partition"], one["leader"], one["start"], one["end"]) for one in described["partitions"]] == [
        (number, 1, 0, 0) for number in range(3)
    ]
    shown = ottla("topics", "describe", topic).out
    assert "retention.ms=1000" in shown
    assert "in sync" in shown
    ottla("topics", "alter", topic, "--partitions", "4", "--unset", "retention.ms", "--set", "cleanup.policy=compact")
    (described,) = ottla("topics", "describe", topic, "--json").lines
    assert described["configs"] == {"cleanup.policy": "compact"}
    assert len(described["partitions"]) == 4
    assert ottla("topics", "delete", topic, "--yes", "--json").lines == [{"topic": topic, "status": "deleted"}]
    assert topic not in ottla("topics", "list").out


def test_a_dry_run_changes_nothing(ottla: CommandLine, topic: str) -> None:
    assert "could be created" in ottla("topics", "create", topic, "--dry-run").out
    assert topic not in ottla("topics", "list").out
    ottla("topics", "create", topic)
    ottla("topics", "alter", topic, "--partitions", "9", "--set", "retention.ms=5", "--dry-run")
    (described,) = ottla("topics", "describe", topic, "--json").lines
    assert (len(described["partitions"]), described["configs"]) == (1, {})


def test_what_is_there_already(ottla: CommandLine, topic: str) -> None:
    ottla("topics", "create", topic)
    refused = ottla("topics", "create", topic, code=FAILED)
    assert "TOPIC_ALREADY_EXISTS" in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    (told,) = ottla("topics", "create", topic, "--json", code=FAILED).lines
    assert (told["status"], told["code"]) == ("failed", "TOPIC_ALREADY_EXISTS")
    assert "is there already" in ottla("topics", "create", topic, "--if-not-exists").out


def test_some_succeed_and_some_fail(ottla: CommandLine, topic: str) -> None:
    done = ottla("topics", "create", topic, "not a name", code=FAILED)
    assert f"topic {topic}: created" in done.out
    assert "not a name" in done.err
    done = ottla("topics", "describe", topic, "nobody-has-it", "--json", code=FAILED)
    assert [line["topic"] for line in done.lines] == [topic, "nobody-has-it"]


def test_deleting_asks_first_and_nobody_there_means_no(ottla: CommandLine, topic: str) -> None:
    ottla("topics", "create", topic)
    assert "nothing was deleted" in ottla("topics", "delete", topic, stdin=b"y\n", code=WRONG).err
    assert topic in ottla("topics", "list").out


def test_settings_of_everything(ottla: CommandLine, topic: str) -> None:
    ottla("topics", "create", topic)
    assert "all settings are at their defaults" in ottla("configs", "describe", f"topic:{topic}").err
    ottla("configs", "alter", f"topic:{topic}", "--set", "retention.ms=7", "--append", "cleanup.policy=compact")
    lines = ottla("configs", "describe", f"topic:{topic}", "--json").lines
    assert {line["key"]: line["value"] for line in lines} == {"retention.ms": "7", "cleanup.policy": "delete,compact"}
    ottla("configs", "alter", f"topic:{topic}", "--subtract", "cleanup.policy=delete", "--unset", "retention.ms")
    lines = ottla("configs", "describe", f"topic:{topic}", "--json").lines
    assert {line["key"]: line["value"] for line in lines} == {"cleanup.policy": "compact"}
    (one,) = ottla("configs", "describe", "broker:1", "log.retention.hours", "--docs", "--json").lines
    assert one["key"] == "log.retention.hours"
    assert len(ottla("configs", "describe", f"topic:{topic}", "--all").out.splitlines()) > 20
    assert {"type": "topic", "name": topic} in ottla("configs", "list", "--json").lines


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["configs", "alter", "topic:t"], "nothing to change"),
        (["configs", "describe", "shelf:t"], "name topic:NAME, broker:ID"),
        (["configs", "describe", "broker:one", "--all"], "a broker is named by its id"),
        (["topics", "alter", "t"], "nothing to change"),
        (["topics", "create", "t", "--set", "retention.ms"], "it must look like key=value"),
        (["topics", "list", "-X", "linger"], "it must look like key=value"),
        (["topics", "list", "-X", "request.timeout=5"], "did you mean"),
        (["produce", "t", "-v", "x", "-X", "compression.typ=zstd"], "did you mean 'compression.type'?"),
        (["produce", "t", "-v", "x", "-X", "compression_typ=zstd"], "'compression_typ': did you mean"),
        (["groups", "list", "--state", "Bogus"], "--state Bogus: it must be Stable, Empty, PreparingRebalance"),
        (["groups", "list", "--type", "shared"], "it must be classic, consumer, share or streams"),
        (["topics", "list", "--config", "missing.properties"], "missing.properties cannot be read"),
        (["topics", "list", "-b", "nonsense"], "host:port"),
        (["groups", "reset", "g"], "either --to PLACE or --by N"),
        (["groups", "reset", "g", "--to", "end", "--by", "3"], "either --to PLACE or --by N"),
        (["groups", "reset", "g", "--to", "soon"], "is no place in a topic"),
    ],
)
def test_wrong_usage_is_told_in_one_line(ottla: CommandLine, arguments: list[str], told: str) -> None:
    done = ottla(*arguments, code=WRONG)
    assert told in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""


def test_a_setting_that_does_not_exist(ottla: CommandLine, topic: str) -> None:
    ottla("topics", "create", topic)
    done = ottla("configs", "describe", f"topic:{topic}", "retention.mss", code=FAILED)
    assert f"topic {topic} has no setting 'retention.mss': did you mean 'retention.ms'?" in done.err
    assert ottla("configs", "describe", f"topic:{topic}", "retention.ms", "--json").lines[0]["key"] == "retention.ms"
    ottla("configs", "describe", "brokers", "log.retention.ms")


def test_names_are_no_markup(ottla: CommandLine, topic: str) -> None:
    ottla("topics", "create", topic)
    for group in ("[/x]", "[red]group[/red]"):
        ottla("groups", "reset", group, "--topic", topic, "--to", "end", "--apply")
        assert group in ottla("groups", "describe", group).out


def test_the_help_tells_the_default_and_the_environment(ottla: CommandLine) -> None:
    shown = " ".join(ottla("topics", "list", "--help").out.split())
    assert "[default: localhost:9092]" in shown
    assert "[env var: OTTLA_BOOTSTRAP_SERVERS]" in shown
    assert "[env var: OTTLA_CLIENT_CONFIG]" in shown


def test_what_is_typed_wins_over_the_environment(
    broker: TestBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = CommandLine("127.0.0.1:1")
    ended = elsewhere("cluster", "-X", f"bootstrap.servers={broker.bootstrap_servers}", "--json", "--timeout", "5")
    assert ended.lines[0]["controller"] == 1
    elsewhere("cluster", "-X", f"bootstrap_servers={broker.bootstrap_servers}", "--timeout", "5")
    settings = tmp_path / "client.properties"
    settings.write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    elsewhere("cluster", "--config", str(settings), "--timeout", "5")


def test_a_broker_that_is_not_there(ottla: CommandLine) -> None:
    done = ottla("topics", "list", "-b", "127.0.0.1:1", "--timeout", "0.3", code=FAILED)
    assert done.err.startswith("ottla: ")
    assert "127.0.0.1:1" in done.err
    assert "Traceback" not in done.err


def test_settings_come_from_a_file_and_options_win(ottla: CommandLine, broker: TestBroker, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text(f"bootstrap.servers=127.0.0.1:1\nclient.id=from-file\n# {broker.bootstrap_servers}\n")
    typed = ("-b", broker.bootstrap_servers)
    assert ottla("cluster", "--config", str(settings), *typed, "--json").lines[0]["controller"] == 1
    without = CommandLine("")
    ended = without("cluster", "--config", str(settings), "--timeout", "0.3", code=FAILED)
    assert "127.0.0.1:1" in ended.err
    settings.write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    assert without("cluster", "--config", str(settings), "--json").lines[0]["controller"] == 1


def test_the_cluster(ottla: CommandLine, broker: TestBroker) -> None:
    (found,) = ottla("cluster", "--json", "--features", "--disks").lines
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    assert [(one["broker"], one["port"], one["state"], one["controller"]) for one in found["brokers"]] == [
        (1, port, "up", True)
    ]
    assert found["features"]["transaction.version"]["level"] == 2
    assert found["log_dirs"][0]["error"] is None
    shown = ottla("cluster", "--features", "--disks").out
    for expected in (found["cluster"], "transaction.version", "GiB"):
        assert expected in shown


def test_offsets_of_a_group_are_shown_moved_and_deleted(ottla: CommandLine, broker: TestBroker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    for number in range(5):
        broker.produce(topic, str(number), partition=0)
    group = f"group-{topic}"
    preview = ottla("groups", "reset", group, "--topic", topic, "--to", "end")
    assert "add --apply" in preview.err
    assert group not in ottla("groups", "list").out
    ottla("groups", "reset", group, "--topic", topic, "--to", "2", "--apply")
    rows = ottla("groups", "lag", group, "--json").lines
    assert [(row["partition"], row["committed"], row["end"], row["lag"]) for row in rows] == [
        (0, 2, 5, 3),
        (1, 0, 0, 0),
    ]
    moved = ottla("groups", "reset", group, "--by", "-1", "--topic", f"{topic}:0", "--apply", "--json").lines
    assert [(row["current"], row["new"], row["change"], row["lag"], row["status"]) for row in moved] == [
        (2, 1, -1, 4, "moved")
    ]
    assert any(line.split()[:3] == [group, topic, "0"] for line in ottla("groups", "lag").out.splitlines())
    (described,) = ottla("groups", "describe", group, "--json").lines
    assert (described["state"], described["members"]) == ("Empty", [])
    assert ottla("groups", "list", "--state", "Empty", "--type", "classic", "--json").lines[0]["group"]
    assert ottla("groups", "list", "--state", "Stable", "--json").lines == []
    ottla("groups", "delete", group, "--yes")
    assert "GROUP_ID_NOT_FOUND" in ottla("groups", "lag", group, code=FAILED).err


def test_names_are_completed_from_the_broker(broker: TestBroker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    from ottla.cli.completion import group_ids, topic_names
    from ottla.cli.main import app

    broker.create_topic(topic)
    context = typer.Context(typer.main.get_command(app))
    context.params = {"bootstrap": broker.bootstrap_servers}
    assert topic in topic_names(context, topic[:-1])
    assert topic_names(context, "no-such-beginning") == []
    assert isinstance(group_ids(context, ""), list)
    context.params = {"bootstrap": "127.0.0.1:1"}
    monkeypatch.setattr("ottla.cli.completion.PATIENCE_SECONDS", 0.2)
    assert topic_names(context, "") == []


@pytest.mark.parametrize(
    "command",
    [
        ["topics", "list"],
        ["topics", "describe"],
        ["topics", "create"],
        ["topics", "delete"],
        ["topics", "alter"],
        ["configs", "list"],
        ["configs", "describe"],
        ["configs", "alter"],
        ["groups", "list"],
        ["groups", "describe"],
        ["groups", "lag"],
        ["groups", "reset"],
        ["groups", "delete"],
        ["cluster"],
        ["produce"],
        ["consume"],
        ["cp"],
    ],
    ids=" ".join,
)
def test_every_command_has_examples_that_name_it(ottla: CommandLine, command: list[str]) -> None:
    shown = ottla(*command, "--help").out
    assert "Examples" in shown
    assert f"ottla {' '.join(command)}" in shown
    assert "--bootstrap-server" in shown


@pytest.mark.parametrize("is_there", [True, False])
def test_completion_prints_names_and_nothing_else(
    broker: TestBroker, topic: str, tmp_path: Path, *, is_there: bool
) -> None:
    """No broker there, or settings that clients warn about: it happens while somebody types."""
    broker.create_topic(topic)
    settings = tmp_path / "client.properties"
    servers = broker.bootstrap_servers if is_there else "127.0.0.1:1"
    settings.write_text(f"bootstrap.servers={servers}\nacks=1\n")
    typed = {"COMP_WORDS": f"ottla consume {topic}", "COMP_CWORD": "2", "_OTTLA_COMPLETE": "complete_bash"}
    environment = {**os.environ, **typed, "PYTHONPATH": str(REPOSITORY / "src"), "OTTLA_CLIENT_CONFIG": str(settings)}
    program = "import sys; sys.argv[0] = 'ottla'; from ottla.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == ([topic] if is_there else [], "")


@pytest.mark.parametrize("command", [[], ["topics"], ["topics", "list"], ["broker"], ["cp"], ["groups", "lag"]])
def test_the_short_way_to_help(ottla: CommandLine, command: list[str]) -> None:
    assert ottla(*command, "-h").out == ottla(*command, "--help").out
