"""`python -m tests.fuzz.repeat FILE`: run the inputs of a finding again and show what happens."""

import sys
from pathlib import Path

from tests.fuzz.corpus_files import read_inputs
from tests.fuzz.instrument import Coverage
from tests.fuzz.loading import prefer_sources
from tests.fuzz.targets.registry import TARGETS


def main(path: Path) -> None:
    name = max((name for name in TARGETS if path.name.startswith(name)), key=len)
    coverage = Coverage()
    prefer_sources(coverage)
    target = TARGETS[name].make()
    for number, data in enumerate(read_inputs(path), 1):
        coverage.restart()
        print(f"{number}: {len(data)} bytes: {sorted(map(repr, target.run(data)))}")  # noqa: T201 - the answer


if __name__ == "__main__":
    main(Path(sys.argv[1]))
