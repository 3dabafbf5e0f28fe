"""The examples of docs/CLIENT.md are run in their order, on one broker, and print what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.peers.ottla import OttlaBroker

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "CLIENT.md").read_text(encoding="utf-8")
TIMEOUT_SECONDS = 60

_EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```output\n(.*?)^```", re.M | re.S)


def test_every_example_prints_what_the_page_says(tmp_path: Path) -> None:
    examples = _EXAMPLE.findall(GUIDE)
    assert len(examples) == GUIDE.count("```python") == 8
    with OttlaBroker(tmp_path) as broker:
        for code, printed in examples:
            assert run(code, broker) == printed


def run(code: str, broker: OttlaBroker) -> str:
    ported = code.replace("localhost:9092", broker.bootstrap)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ported],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
