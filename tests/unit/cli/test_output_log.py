"""What a JVM and other children print goes to a log; what the command prints stays on the screen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_COMMAND = """
import subprocess, sys
from pathlib import Path
from ottla.cli.output import Output
from ottla.cli.output_log import output_to

NOISE = "import sys; print('CodeCache is full'); print('WARN Utils', file=sys.stderr)"
output = Output()
print("before")
with output_to(Path(sys.argv[1])):
    subprocess.run([sys.executable, "-c", NOISE], check=True)
    print("the command's own line")
    output.console.print("a table")
    print("a logger's line", file=sys.stderr)
subprocess.run([sys.executable, "-c", "print('after')"], check=True)
output.console.print("the end")
"""


def test_children_print_to_the_log_and_the_command_to_the_screen(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "spark.log"
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, str(log)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(
        ["before", "the command's own line", "a table", "after", "the end"]
    )
    assert log.read_text().splitlines() == ["CodeCache is full", "WARN Utils", "a logger's line"]
