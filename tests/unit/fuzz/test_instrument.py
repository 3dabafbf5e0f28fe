"""Marked code does what it did before, and says which branches it took."""

import ast
from collections.abc import Callable
from typing import Any

import pytest
from tests.fuzz.instrument import Coverage, instrumented

SOURCE = '''
"""A module."""


class Shape:
    """Names with two underscores stay what they are."""

    __sides = 3

    def sides(self):
        """How many."""
        return self.__sides


async def waits():
    async with nothing():
        return 1


def story(number, *names):
    """Everything that branches."""
    seen = []
    for name in names:
        if name == "skip":
            continue
        if name == "stop":
            break
        seen.append(name)
    else:
        seen.append("all")
    while number > 10:
        number -= 3
    try:
        seen.append(100 // number)
    except ZeroDivisionError as error:
        seen.append(str(error))
    match number:
        case 1 | 2:
            seen.append("small")
        case _:
            seen.append("other")
    seen.append("even" if number % 2 == 0 else "odd")
    seen.append(bool(number and number != 7 or names))
    seen.append((lambda left, *, right=5: left + right)(number))
    return seen
'''


def loaded(source: str, coverage: Coverage | None) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    tree = ast.parse(source) if coverage is None else instrumented(source, "story.py", coverage, "story")
    if coverage is not None:
        scope.update(coverage.namespace())
    exec(compile(tree, "story.py", "exec"), scope)
    return scope


@pytest.mark.parametrize("number", [0, 1, 7, 8, 11, 30])
@pytest.mark.parametrize("names", [(), ("a", "b"), ("skip", "a"), ("a", "stop", "b")])
def test_marks_change_nothing(number: int, names: tuple[str, ...]) -> None:
    marked = loaded(SOURCE, Coverage())
    assert marked["story"](number, *names) == loaded(SOURCE, None)["story"](number, *names)
    assert marked["story"].__doc__ == "Everything that branches."
    assert marked["Shape"]().sides() == 3


def reached(coverage: Coverage, call: Callable[[], object]) -> set[str]:
    coverage.restart()
    call()
    return {
        coverage.places[number] for number, hit in enumerate(coverage.hits) if hit and number not in coverage.nearness
    }


def test_each_way_is_seen() -> None:
    coverage = Coverage()
    story = loaded(SOURCE, coverage)["story"]
    plain, stopped = reached(coverage, lambda: story(1, "a")), reached(coverage, lambda: story(1, "stop"))
    assert {place.partition(" ")[2] for place in plain - stopped} == {"else", "end of the loop"}
    assert {place.partition(" ")[2] for place in stopped - plain} == {"if"}
    divided = reached(coverage, lambda: story(0))
    assert "except" in {place.partition(" ")[2] for place in divided - plain}
    assert reached(coverage, lambda: story(1, "a")) == plain


def test_what_was_compared_and_how_near_it_came_is_noted() -> None:
    coverage = Coverage()
    check = loaded("MAGIC = 0x1234\ndef check(n, b):\n    return n == MAGIC, b != b'abcd'\n", coverage)["check"]
    coverage.restart()
    assert check(0x1235, b"abXX") == (False, True)
    assert list(coverage.pairs.values()) == [(0x1235, 0x1234), (b"abXX", b"abcd")]
    first, second = (number for number in sorted(coverage.nearness) if coverage.hits[number])
    coverage.restart()
    check(0x1236, b"abcX")
    nearer = [number for number in sorted(coverage.nearness) if coverage.hits[number]]
    assert nearer == [first, second + 1]


def test_a_loop_that_does_not_end_runs_out_of_steps() -> None:
    forever = loaded("def forever():\n    while True:\n        pass\n", Coverage())["forever"]
    with pytest.raises(OverflowError):
        forever()
