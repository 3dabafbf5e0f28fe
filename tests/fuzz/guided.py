"""The guided search: run an input, keep it when it reached something new, make the next one out of what was kept.

Everything is drawn from the dice it was handed, and nothing depends on time: the same seed, seeds and number of
executions give the same corpus and the same findings.
"""

import asyncio
import hashlib
import random
import resource
import traceback
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.bytes_mutations import havoc, satisfied, satisfy
from tests.fuzz.instrument import Coverage, Pair
from tests.fuzz.target import Finding, Target

NEWEST = 40
NEWEST_SHARE = 0.5
PAIRS_SHARE = 0.2
TRIES_OF_ONE_COMPARISON = 16
MEMORY_JUMP_LIMIT_KIB = 128 * 1024
MOST_FINDINGS = 20


@dataclass(slots=True)
class Entry:
    data: bytes
    pairs: tuple[Pair, ...] = ()


@dataclass(slots=True)
class Found:
    """A finding: where it happened, the inputs that lead to it (the last one alone, where that is enough)."""

    target: str
    kind: str
    report: str
    inputs: list[bytes]

    @property
    def name(self) -> str:
        return f"{self.target}-{hashlib.sha256(self.kind.encode()).hexdigest()[:10]}"

    def save(self, directory: Path) -> Path:
        """As text: what happened, then each input as a line of hex digits."""
        directory.mkdir(parents=True, exist_ok=True)
        comments = "".join(f"# {line}\n" for line in f"target: {self.target}\n{self.kind}\n{self.report}".splitlines())
        path = directory / f"{self.name}.hex"
        path.write_text(comments + "".join(f"{data.hex()}\n" for data in self.inputs), encoding="utf-8")
        return path


@dataclass(slots=True)
class Search:
    """`watchdog` is called before each run of the target, so that one that hangs can be told from a slow search."""

    target: Target
    coverage: Coverage
    dice: random.Random
    watchdog: Callable[[], object] = lambda: None
    corpus: list[Entry] = field(default_factory=list)
    found: dict[str, Found] = field(default_factory=dict)
    executions: int = 0
    most_steps: int = 0
    _reached: int = 0
    _queue: deque[bytes] = field(default_factory=deque)
    _tries: Counter[int] = field(default_factory=Counter)
    _features: set[Hashable] = field(default_factory=set)

    @property
    def edges(self) -> int:
        """Branches that were reached, without how near comparisons came."""
        reached = self._reached.to_bytes(len(self.coverage.hits), "little")
        return reached.count(1) - sum(map(reached.__getitem__, self.coverage.nearness))

    def begin(self, seeds: Iterable[bytes]) -> None:
        """Run what is known already; all of it is kept when nothing reaches anything, so that there is a beginning."""
        known = list(seeds)
        for data in known:
            self.execute(data)
        if not self.corpus:
            self.corpus += [Entry(data) for data in known] or [Entry(b"")]

    def step(self) -> None:
        data = self._queue.popleft() if self._queue else self._next_input()
        self.execute(data[: self.target.longest_bytes])

    def execute(self, data: bytes) -> None:
        """Run one input; keep it, or what it broke."""
        self.executions += 1
        coverage = self.coverage
        coverage.restart()
        history = self.target.history()
        memory_kib = _peak_memory_kib()
        self.watchdog()
        try:
            features = set(self.target.run(data))
            if _peak_memory_kib() - memory_kib > MEMORY_JUMP_LIMIT_KIB:
                raise Finding(f"memory grew by more than {MEMORY_JUMP_LIMIT_KIB // 1024} MiB")
        except (Exception, asyncio.CancelledError) as error:
            self._note(error, [*history, data])
            self.target.forget()
            return
        self.most_steps = max(self.most_steps, coverage.steps_used)
        reached = int.from_bytes(coverage.hits, "little")
        new = reached & ~self._reached
        if new or not features <= self._features:
            self._reached |= new
            self._features |= features
            self.corpus.append(Entry(data, tuple(coverage.pairs.values())))
            self._queue_what_would_satisfy(data)

    def _queue_what_would_satisfy(self, data: bytes) -> None:
        """What is new is first given what its comparisons were looking for; each of them gets a few tries in all."""
        for site, pair in self.coverage.pairs.items():
            if self._tries[site] < TRIES_OF_ONE_COMPARISON:
                made = satisfied(data, pair)
                self._tries[site] += len(made)
                self._queue += made

    def _next_input(self) -> bytes:
        dice = self.dice
        entry, other = self._pick(), self._pick()
        chance = dice.random()
        changed: bytes | None = None
        if chance < self.target.format_share:
            changed = self.target.mutate(dice, entry.data, other.data)
        elif chance < self.target.format_share + PAIRS_SHARE and entry.pairs:
            changed = satisfy(dice, entry.data, entry.pairs)
        return havoc(dice, entry.data, other.data) if changed is None else changed

    def _pick(self) -> Entry:
        corpus = self.corpus
        newest = corpus[-NEWEST:] if self.dice.random() < NEWEST_SHARE else corpus
        return self.dice.choice(newest)

    # Findings

    def _note(self, error: BaseException, inputs: list[bytes]) -> None:
        kind = kind_of(error)
        if kind in self.found or len(self.found) >= MOST_FINDINGS:
            return
        report = "".join(traceback.format_exception(error))
        self.found[kind] = Found(self.target.name, kind, report, Minimiser(self, kind).smallest(inputs))


def _peak_memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def kind_of(error: BaseException) -> str:
    """What went wrong and where: the innermost place in the broker's own code, and the words of a `Finding`."""
    cause = error.__cause__ or error
    frames = traceback.extract_tb(cause.__traceback__)
    own = [frame for frame in frames if "/ottla/" in frame.filename or frame.filename.startswith("<")]
    place = (own or frames)[-1]
    where = f"{type(cause).__name__} in {Path(place.filename).name}:{place.name}:{place.lineno}"
    if not isinstance(error, Finding):
        return where
    words = "".join("#" if letter.isdigit() else letter for letter in str(error).partition("\n")[0])
    return f"{where}: {words[:100]}"


class Minimiser:
    """Makes what leads to a finding small: first without the history, then byte range by byte range."""

    MOST_RUNS = 600

    def __init__(self, search: Search, kind: str) -> None:
        self._search = search
        self._target = search.target
        self._kind = kind
        self._runs = 0

    @property
    def _goes_on(self) -> bool:
        return self._runs < self.MOST_RUNS

    def smallest(self, inputs: list[bytes]) -> list[bytes]:
        """The same inputs when they do not lead there again: then something outside of them does."""
        if not self._fails(inputs):
            return inputs
        for count in (1, 2, 4, 8, 16, 32):
            if count < len(inputs) and self._fails(inputs[-count:]):
                inputs = inputs[-count:]
                break
        inputs = self._fewer(inputs)
        for number in range(len(inputs) - 1, -1, -1):
            inputs = self._shorter(inputs, number)
        return inputs

    def _fails(self, inputs: list[bytes]) -> bool:
        self._target.forget()
        try:
            for data in inputs:
                self._runs += 1
                self._search.watchdog()
                self._search.coverage.restart()
                set(self._target.run(data))
        except (Exception, asyncio.CancelledError) as error:
            return kind_of(error) == self._kind
        return False

    def _fewer(self, inputs: list[bytes]) -> list[bytes]:
        for number in range(len(inputs) - 2, -1, -1):
            without = inputs[:number] + inputs[number + 1 :]
            if self._goes_on and self._fails(without):
                inputs = without
        return inputs

    def _shorter(self, inputs: list[bytes], number: int) -> list[bytes]:
        size = len(inputs[number]) // 2
        while size and self._goes_on:
            position = 0
            while position < len(inputs[number]) and self._goes_on:
                data = inputs[number]
                shorter = [*inputs[:number], data[:position] + data[position + size :], *inputs[number + 1 :]]
                if self._fails(shorter):
                    inputs = shorter
                else:
                    position += size
            size //= 2
        return inputs
