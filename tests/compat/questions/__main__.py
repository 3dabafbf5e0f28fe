"""`python -m tests.compat.questions [--long] [--seed N] [API ...]`: ask both brokers, print every difference."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from tests.compat.questions.generator import LONG, SHORT
from tests.compat.questions.verdict import SEED, ask_both


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="every question in every version")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    console = Console(width=180, highlight=False, markup=False, soft_wrap=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        verdict = ask_both(Path(directory), LONG if arguments.long else SHORT, arguments.seed)
    for finding in verdict.findings:
        console.print(str(finding))
    console.print(
        f"{verdict.asked} questions, {len(verdict.findings)} differ, {verdict.excused_questions} excused, "
        f"{time.monotonic() - began:.0f} s"
    )
    for api, count in Counter(finding.case.api.name for finding in verdict.findings).most_common():
        console.print(f"{count:6} {api}")
    for excuse, count in verdict.excused.most_common():
        console.print(f"{count:6} {excuse}")
    return bool(verdict.findings)


if __name__ == "__main__":
    sys.exit(main())
