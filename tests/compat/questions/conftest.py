"""Both brokers are asked once for all tests of this folder; what came of it is told at the end of the run."""

import pytest
from tests.compat.questions.generator import SHORT
from tests.compat.questions.verdict import Verdict, ask_both
from tests.peers.paths import PeerMissing

_told = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def verdict(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    try:
        found = ask_both(tmp_path_factory.mktemp("questions"), SHORT)
    except PeerMissing as error:
        pytest.skip(str(error))
    request.config.stash[_told] = (
        f"{found.asked} questions to Ottla and to Apache Kafka: {len(found.findings)} answered differently, "
        f"{found.excused_questions} excused"
    )
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _told in config.stash:
        terminalreporter.write_line(config.stash[_told])
