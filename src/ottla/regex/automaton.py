"""An expression as a nondeterministic automaton, which is in several states at a time.

What follows from a set of states is worked out once and kept: after a few names a match is one look-up for each
character. What is kept is bounded, and so is the size of the automaton.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.regex.classes import Takes, is_word
from ottla.regex.syntax import (
    Alternatives,
    Characters,
    Node,
    Parser,
    Position,
    RegexError,
    Repeat,
    Sequence,
)

MAX_TEXT = 10_000
MAX_STATES = 2_000
MAX_STEPS = 4_000
MAX_KEPT = 4_000
# About a millisecond.
EFFORT_AT_ONCE = 5_000


@dataclass(slots=True)
class State:
    """Goes on with a character that it `takes`, at a place of this `kind`, or at once; `ways` has where to."""

    takes: Takes | None = None
    kind: str = ""
    ways: tuple[int, ...] = ()


class Place(NamedTuple):
    """What lies around a place in a name; the characters before and after it, of which one is missing at its ends."""

    is_start: bool
    is_end: bool
    is_boundary: bool
    starts_line: bool
    ends_line: bool

    @classmethod
    def between(cls, before: str, after: str) -> "Place":
        is_start, is_end = not before, not after
        is_boundary = is_word(before) != is_word(after)
        return cls(is_start, is_end, is_boundary, is_start or before == "\n", is_end or after == "\n")

    def is_a(self, kind: str) -> bool:
        match kind:
            case "^":
                return self.is_start
            case "$":
                return self.is_end
            case "^m":
                return self.starts_line
            case "$m":
                return self.ends_line
            case _:
                return self.is_boundary == (kind == "b")


States = frozenset[int]


class Matcher:
    """`effort` counts the states that had to be looked at: what a match costs beside its look-ups."""

    def __init__(self, states: list[State], start: int, end: int) -> None:
        self._states = states
        self._start = frozenset((start,))
        self._end = end
        self._reached: dict[tuple[States, Place], States] = {}
        self._moved: dict[tuple[States, str], States] = {}
        self.effort = 0

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        work = self.match(name)
        while True:
            try:
                next(work)
            except StopIteration as end:
                return bool(end.value)

    def match(self, name: str) -> Generator[None, None, bool]:
        """The same, with a pause whenever others should have their turn."""
        current = self._start
        before = ""
        pause_at = self.effort + EFFORT_AT_ONCE
        for character in name:
            current = self._move(self._reach(current, Place.between(before, character)), character)
            if not current:
                return False
            before = character
            if self.effort > pause_at:
                yield
                pause_at = self.effort + EFFORT_AT_ONCE
        return self._end in self._reach(current, Place.between(before, ""))

    def _reach(self, states: States, place: Place) -> States:
        """All states that can be reached from these without a character."""
        found = self._reached.get((states, place))
        if found is not None:
            return found
        seen = set(states)
        to_do = list(states)
        while to_do:
            state = self._states[to_do.pop()]
            if state.takes is None and (not state.kind or place.is_a(state.kind)):
                for way in state.ways:
                    if way not in seen:
                        seen.add(way)
                        to_do.append(way)
        self.effort += len(seen)
        if len(self._reached) >= MAX_KEPT:
            self._reached.clear()
        result = self._reached[states, place] = frozenset(seen)
        return result

    def _move(self, states: States, character: str) -> States:
        found = self._moved.get((states, character))
        if found is not None:
            return found
        self.effort += len(states)
        if len(self._moved) >= MAX_KEPT:
            self._moved.clear()
        ways: set[int] = set()
        for number in states:
            state = self._states[number]
            if state.takes is not None and state.takes(character):
                ways.update(state.ways)
        result = self._moved[states, character] = frozenset(ways)
        return result


def compile_regex(text: str) -> Matcher:
    """RegexError when it is none, or too large."""
    if len(text) > MAX_TEXT:
        raise RegexError(f"the expression is too large: it has more than {MAX_TEXT} characters")
    builder = _Builder()
    end = builder.add(State())
    start = builder.build(Parser(text).parse(), end)
    return Matcher(builder.states, start, end)


class _Builder:
    """Builds from the end: each part is told where to go on, and tells where it begins."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self._steps = 0

    def add(self, state: State) -> int:
        if len(self.states) >= MAX_STATES:
            raise RegexError(f"the expression is too large: it takes more than {MAX_STATES} states")
        self.states.append(state)
        return len(self.states) - 1

    def build(self, node: Node, then: int) -> int:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise RegexError("the expression is too large: it repeats repetitions too often")
        match node:
            case Characters(takes):
                return self.add(State(takes, ways=(then,)))
            case Position(kind):
                return self.add(State(kind=kind, ways=(then,)))
            case Sequence(parts):
                for part in reversed(parts):
                    then = self.build(part, then)
                return then
            case Alternatives(choices):
                return self.add(State(ways=tuple(self.build(choice, then) for choice in choices)))
            case Repeat(part, least, most):
                return self._repeat(part, least, most, then)

    def _repeat(self, part: Node, least: int, most: int | None, then: int) -> int:
        if most is None:
            loop = self.add(State())
            self.states[loop].ways = (self.build(part, loop), then)
            then = loop
        else:
            end = then
            for _ in range(most - least):
                then = self.add(State(ways=(self.build(part, then), end)))
        for _ in range(least):
            then = self.build(part, then)
        return then
