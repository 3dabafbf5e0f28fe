"""Every client library's own suite on Ottla: what is not left out passes. `make compat` compares with Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.compat.suites.runner import SUITES, run_suite
from tests.compat.suites.suite import Result
from tests.peers.paths import PeerMissing

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("name", SUITES)
def test_suite_of_a_client_library(name: str, tmp_path: Path) -> None:
    try:
        run = run_suite(SUITES[name](), "ottla", tmp_path)
    except PeerMissing as missing:
        pytest.skip(str(missing))
    failed = {test: outcome.note for test, outcome in run.outcomes.items() if outcome.result is Result.FAILED}
    assert not failed, run.output[-20_000:]
    assert run.count(Result.PASSED) > run.count(Result.SKIPPED)
