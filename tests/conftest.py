"""Fixtures for tests that talk to a running broker.

`--target=kafka` (or `OTTLA_TARGET=kafka`) runs the very same tests on Apache Kafka: a failure there is a test's fault.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from tests.peers.paths import REPOSITORY, PeerMissing
from tests.peers.process import ServerProcess

if TYPE_CHECKING:
    from tests.peers.secured_kafka import SecuredKafka

pytest_plugins = ["pytester"]

# Helpers with assertions of their own, used from several folders: named before the first of them is imported.
pytest.register_assert_rewrite(
    "tests.unit.broker.api.questions",
    "tests.unit.broker.api.config_questions",
    "tests.unit.broker.api.log_dir_questions",
)

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

_TARGETS = ("ottla", "kafka")
_topic_numbers = itertools.count(1)


def pytest_sessionstart() -> None:
    """Refuse to test compiled modules that are older than their source."""
    for compiled in (REPOSITORY / "src").rglob("*.so"):
        name = compiled.name.partition(".")[0]
        sources = [compiled.with_name(f"{name}.py")]
        if name == "_native":
            sources = [one for one in compiled.parent.iterdir() if one.suffix in (".pyx", ".pxi", ".h")]
        for source in sources:
            if source.exists() and source.stat().st_mtime > compiled.stat().st_mtime:
                raise pytest.UsageError(
                    f"{source.relative_to(REPOSITORY)} is newer than its compiled form: run make setup"
                )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=_TARGETS,
        default=os.environ.get("OTTLA_TARGET", "ottla"),
        help="the broker that the tests against real clients use",
    )


def start_broker(
    target: str, directory: Path, port: int | None = None, properties: dict[str, str] | None = None
) -> ServerProcess:
    """A running broker of the wanted kind; the modules load here, so that other tests need no peers."""
    if target == "kafka":
        from tests.peers.kafka import KafkaBroker

        return KafkaBroker(directory, port, properties=properties, short_lived=True).start()
    from tests.peers.ottla import OttlaBroker

    # Some records of the tests are years old; Apache Kafka is told the same.
    return OttlaBroker(directory, port, properties={"log.retention.ms": "-1"} | (properties or {})).start()


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--target"))


@pytest.fixture(scope="session")
def broker(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One broker for the whole run; tests keep apart by using topics of their own."""
    server = start_broker(target, tmp_path_factory.mktemp("broker"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """One Apache Kafka with a listener for each way of being careful, for the whole run."""
    from tests.peers.certificates import Authority
    from tests.peers.secured_kafka import SecuredKafka

    directory = tmp_path_factory.mktemp("secured")
    try:
        server = SecuredKafka(directory / "kafka", Authority(directory / "authority"))
    except PeerMissing as missing:
        pytest.skip(str(missing))
    with server:
        yield server


@pytest.fixture
def topic() -> str:
    """A name no other test of this run has."""
    return f"topic-{next(_topic_numbers)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the brokers that run now have printed."""
    report = yield
    if report.failed:
        for server in ServerProcess.alive:
            report.sections.append((f"{server.name} pid {server.pid}", server.log_tail()))
    return report
