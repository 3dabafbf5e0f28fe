"""`python -m tests.fuzz.worker`: the guided search, in a process of its own.

It has to be one, since the broker's modules are loaded from marked sources here. It tells what it does in lines of
JSON: a `hello` with the ids of the topics that inputs name, a `state` for each target now and then, and a `found` for
each finding. With `--executions` nothing depends on time, and the same seed gives the same lines.
"""

import argparse
import hashlib
import json
import logging
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tests.fuzz.corpus_files import FoundInputs, kept_inputs
from tests.fuzz.guided import Search
from tests.fuzz.instrument import Coverage
from tests.fuzz.loading import prefer_sources
from tests.fuzz.target import Finding
from tests.fuzz.targets.registry import TARGETS

HANG_SECONDS = 60
ROUND_SECONDS = 4.0
PAGE_KIB = 4


@dataclass(slots=True)
class Desk:
    """One target's search, and what of it was told and stored already."""

    search: Search
    found_inputs: FoundInputs | None
    findings: Path | None
    stored: int = 0
    told: int = 0

    def tell(self) -> None:
        search = self.search
        if self.found_inputs is not None:
            for entry in search.corpus[self.stored :]:
                self.found_inputs.add(entry.data)
            self.stored = len(search.corpus)
        for found in list(search.found.values())[self.told :]:
            path = None if self.findings is None else str(found.save(self.findings))
            say(event="found", target=found.target, kind=found.kind, path=path, report=found.report)
        self.told = len(search.found)
        digest = hashlib.sha256(b"".join(hashlib.sha256(entry.data).digest() for entry in search.corpus))
        say(
            event="state",
            target=search.target.name,
            executions=search.executions,
            edges=search.edges,
            # One that the broker answered in two new ways is in the corpus twice, and one input all the same.
            corpus=len({entry.data for entry in search.corpus}),
            findings=len(search.found),
            most_steps=search.most_steps,
            digest=digest.hexdigest(),
            memory_bytes=memory_bytes(),
        )


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)  # noqa: T201 - this is how it talks to whoever started it


def memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_KIB * 1024


def _hangs(number: int, frame: FrameType | None) -> None:
    raise Finding(f"an input did not end within {HANG_SECONDS} s")


def run_for(desks: list[Desk], seconds: float) -> None:
    """Share the time: in each round, every target gets its part of it."""
    total = sum(TARGETS[desk.search.target.name].share for desk in desks)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for desk in desks:
            share = TARGETS[desk.search.target.name].share / total
            slice_end = min(end, time.monotonic() + ROUND_SECONDS * share)
            while time.monotonic() < slice_end:
                desk.search.step()
            desk.tell()


def run_count(desk: Desk, executions: int) -> None:
    """One target after the other: what the first of them load, later ones find loaded."""
    while desk.search.executions < executions:
        desk.search.step()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.worker", description="The guided search.")
    parser.add_argument("--targets", default=",".join(TARGETS), help="which ones, with commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--executions", type=int, default=None, help="for each target, in place of seconds")
    parser.add_argument("--corpus", type=Path, default=None, help="begin with what is there, and add to it")
    parser.add_argument("--findings", type=Path, default=None, help="where findings are saved")
    return parser.parse_args()


def main() -> int:
    wanted = arguments()
    began = time.monotonic()
    coverage = Coverage()
    prefer_sources(coverage)
    logger = logging.getLogger("ottla")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    signal.signal(signal.SIGALRM, _hangs)
    desks: list[Desk] = []
    for name in wanted.targets.split(","):
        target = TARGETS[name].make()
        ids = getattr(target, "topic_ids", None)
        if ids is not None:
            say(event="hello", topic_ids={topic: topic_id.hex() for topic, topic_id in ids.items()})
        search = Search(target, coverage, random.Random(f"{wanted.seed}/{name}"), lambda: signal.alarm(HANG_SECONDS))
        found_inputs = None if wanted.corpus is None else FoundInputs(wanted.corpus, name)
        earlier = [] if found_inputs is None else found_inputs.news()
        search.begin([*target.seeds(), *kept_inputs(name), *earlier])
        desks.append(Desk(search, found_inputs, wanted.findings))
        if wanted.executions is not None:
            run_count(desks[-1], wanted.executions)
        desks[-1].tell()
    if wanted.executions is None:
        run_for(desks, wanted.seconds - (time.monotonic() - began))
    signal.alarm(0)
    for desk in desks:
        desk.tell()
    return 1 if any(desk.search.found for desk in desks) else 0


if __name__ == "__main__":
    sys.exit(main())
