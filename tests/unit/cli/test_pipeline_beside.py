"""A command beside the demo brings Spark: it is waited for, told when to go on, and ended."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from ottla.cli.pipeline_beside import Beside, PreparationFailed


def _beside(code: str, folder: Path) -> Beside:
    program = folder / "program.py"
    program.write_text(f"import sys, time\n{code}\n")
    return Beside(f"{sys.executable} -u {program}", folder / "install.log")


def test_spark_waits_until_it_is_ready_and_it_waits_for_the_pipelines(tmp_path: Path) -> None:
    done = tmp_path / "done"
    code = (
        f"print('fetching'); print('ready'); sys.stdin.readline(); print('compiling'); open({str(done)!r}, 'w').close()"
    )
    with _beside(code, tmp_path) as beside:
        beside.wait(threading.Event())
        assert not done.exists()
        beside.go_on()
        beside.go_on()
        beside._process.wait(60)
        beside._reading.join(60)
        assert beside.said == "compiling"
    assert done.exists()


def test_what_it_says_last_is_why_there_is_no_spark(tmp_path: Path) -> None:
    code = "print('no network', flush=True); sys.exit(1)"
    with _beside(code, tmp_path) as beside, pytest.raises(PreparationFailed, match="no network"):
        beside.wait(threading.Event())


def test_it_is_ended_with_the_demo_whatever_it_does(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with _beside("time.sleep(600)", tmp_path) as beside:
        beside.wait(stop)
    assert beside._process.returncode != 0
