"""A question: requests with placeholders for what differs between two brokers, and the topics they need.

Placeholders stand for what only one broker knows. Before a request is encoded, the side that sends it puts its own
values in; what comes back is turned into placeholders again, so that both sides can be compared.

| placeholder         | stands for                                                                    |
|---------------------|-------------------------------------------------------------------------------|
| `FRESH` in any text | the name of a topic that this question has for itself                         |
| `topic_id(name)`    | the id that the broker gave to the topic; `FRESH_ID` is that of `FRESH`       |
| `SESSION`           | the fetch session that this question opened last                              |
| `DATA`              | the log directory                                                             |
| `member(n)`         | the n-th member id that a broker gave to this question, counted from 1        |
| `PRODUCER_ID`       | the producer id that this question was given last                             |
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request
from ottla.protocol.schema import Struct

FRESH = "@fresh"
DATA = "@data"
SESSION = 0x7EA5E551
PRODUCER_ID = 0x7EA5E552_7EA5E552
NO_SUCH_TOPIC = "no-such-topic"


def topic_id(name: str) -> bytes:
    """The placeholder of a topic's id."""
    return hashlib.md5(name.encode(), usedforsecurity=False).digest()


def member(number: int) -> str:
    """The placeholder of a member's id."""
    return f"@member-{number}@"


FRESH_ID = topic_id(FRESH)
UNKNOWN_ID = topic_id(NO_SUCH_TOPIC)


@dataclass(frozen=True)
class Topic:
    """A topic that exists before it is asked about; `batches` are appended to its partitions in order."""

    name: str = FRESH
    partitions: int = 1
    configs: dict[str, str] = field(default_factory=dict)
    batches: dict[int, tuple[bytes, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """One request and what its answer may be.

    `settles`: it looks at the effect of an earlier one, which Kafka's brokers learn a moment after they answered; it is
    asked until both sides agree, for a bounded time. `lingers`: both brokers do, so it is first asked until the answer
    is the same twice, and tells of nothing that is under way. `only`: of a list of groups or transactions, those whose
    names begin so.
    """

    request: Request
    version: int
    settles: bool = False
    lingers: bool = False
    only: str = ""

    @property
    def api(self) -> ApiKey:
        return self.request.API_KEY


@dataclass(frozen=True)
class RawAsk:
    """A frame as it is, which brings its own length if it is `prefixed`; an answer is read as that of `request`."""

    frame: bytes
    request: type[Request]
    version: int
    settles: bool = False
    lingers: bool = False
    prefixed: bool = False
    only: str = ""

    @property
    def api(self) -> ApiKey:
        return self.request.API_KEY


@dataclass(frozen=True)
class Case:
    """Asks in order, on one connection. `label` says what is special, without the version.

    `late`: it needs coordinators. `alone`: on a connection of its own. `silent`: no answer is expected; what is
    compared is whether the connection lives on. `hangs`: Kafka is known to say nothing at all, so it is not waited for
    long.
    """

    api: ApiKey
    version: int
    label: str
    asks: tuple[Ask | RawAsk, ...]
    topics: tuple[Topic, ...] = ()
    alone: bool = False
    silent: bool = False
    hangs: bool = False
    late: bool = False

    @property
    def title(self) -> str:
        return f"{self.api.name} v{self.version} {self.label}"


def clone(value: Any) -> Any:
    """A copy that shares nothing that can change."""
    return transform(value, lambda leaf: leaf)


def transform(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy with every leaf put through `change`."""
    if isinstance(value, Struct):
        copy = type(value)()
        for one in value.FIELDS:
            setattr(copy, one.name, transform(getattr(value, one.name), change))
        return copy
    if isinstance(value, list):
        return [transform(element, change) for element in value]
    return change(value)


def with_own_topic(case: Case, name: str) -> Case:
    """The case with a name in place of `FRESH`."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, str) and FRESH in leaf:
            return leaf.replace(FRESH, name)
        if leaf == FRESH_ID:
            return topic_id(name)
        return leaf

    asks = tuple(
        replace(ask, request=transform(ask.request, change), only=ask.only.replace(FRESH, name))
        if isinstance(ask, Ask)
        else ask
        for ask in case.asks
    )
    topics = tuple(replace(topic, name=topic.name.replace(FRESH, name)) for topic in case.topics)
    return replace(case, asks=asks, topics=topics)
