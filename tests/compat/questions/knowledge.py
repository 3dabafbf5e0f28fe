"""What is interesting about each API: good requests to start from, values for its fields, the topics they need.

An API without knowledge of its own is asked with its defaults (`generic`). To add to one, see CONTRIBUTING.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.compat.questions.mutations import Hints
from tests.compat.questions.question import Ask, Topic

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request
from ottla.protocol.registry import request_class
from ottla.protocol.schema import StructType

READS, CREATES, WRITES, COORDINATES = range(4)


@dataclass(frozen=True)
class Base:
    """A good request. `then` looks at what it did; it is asked after every change of it, too.

    `vary` is off for requests that are only asked as they are; `only` is that of an `Ask`.
    """

    label: str
    request: Request
    topics: tuple[Topic, ...] = ()
    then: tuple[Ask, ...] = ()
    only: str = ""
    vary: bool = True
    alone: bool = False
    silent: bool = False
    hangs: bool = False


Bases = Callable[[int], list[Base]]


@dataclass(frozen=True)
class About:
    """Knowledge of one API. What it does may disturb other questions: the `turn` says who is asked first."""

    bases: Bases
    hints: Hints = field(default_factory=Hints)
    turn: int = READS


ABOUT: dict[ApiKey, About] = {}


def about(api: ApiKey, /, *, turn: int = READS, **values: tuple[Any, ...]) -> Callable[[Bases], Bases]:
    """Register the bases of an API; `values` are hints by the name of a field, paths with `__` for `.`."""

    def register(bases: Bases) -> Bases:
        hints = {name.replace("__", "."): given for name, given in values.items()}
        ABOUT[api] = About(bases, Hints(hints), turn)
        return bases

    return register


def knowledge_of(key: ApiKey) -> About:
    return ABOUT.get(key) or About(lambda version: generic(key, version))


def generic(key: ApiKey, version: int) -> list[Base]:
    """A request with its defaults, and one with an element in every array."""
    cls = request_class(key)
    assert cls is not None
    return [Base("defaults", cls()), Base("filled", _filled(cls, version))]


def _filled(cls: Any, version: int) -> Any:
    made = cls()
    for one in cls.FIELDS:
        if version not in one.versions:
            continue
        if isinstance(one.type, StructType):
            element = _filled(one.type, version)
            setattr(made, one.name, [element] if one.is_array else element)
        elif one.is_array:
            setattr(made, one.name, [] if one.type.default is None else [one.type.default])
    return made
