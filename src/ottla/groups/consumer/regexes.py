"""Which topics the expressions of a group stand for: looked up beside the heartbeats, a few topics at a time.

A look-up begins with a heartbeat, at most every 10 seconds for a group, when

- an expression is not resolved yet, or
- there are topics that were not there at the last look-up, or
- the last look-up is older than `group.consumer.regex.refresh.interval.ms`.

Its result is written as an event of its own; whoever needs it learns of it with the next heartbeat.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ottla.cluster.image import ClusterImage, TopicImage
from ottla.groups.consumer.group import NEVER_MS, ConsumerGroup, ResolvedRegex
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.context import GroupContext
from ottla.groups.entries import ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue
from ottla.ledger.entries import Entry
from ottla.ledger.machine import Decision, Timers
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.regex import Matcher, RegexError, compile_regex

MIN_INTERVAL_MS = 10_000
NAMES_AT_ONCE = 200
NOTHING = r"[^\w.-]"
"""Takes the place of an expression that another version wrote and that is none here."""


@dataclass(frozen=True, slots=True)
class RegexChange:
    """What a heartbeat does to the expressions of its group.

    `affects_others` when topics are known to come or go with it, so that partitions have to be spread anew.
    """

    is_updated: bool = False
    affects_others: bool = False
    is_unknown: bool = False


class _LookUp:
    """One look-up under way."""

    def __init__(self, matchers: dict[str, Matcher], image: ClusterImage, started_ms: int) -> None:
        self.image = image
        self.started_ms = started_ms
        self.found: dict[str, set[str]] = {regex: set() for regex in matchers}
        self._work = self._look_up(matchers, sorted(image.topics))

    def _look_up(self, matchers: dict[str, Matcher], names: list[str]) -> Iterator[None]:
        """With a pause whenever others should have their turn."""
        for number, name in enumerate(names, 1):
            for regex, matcher in matchers.items():
                if (yield from matcher.match(name)):
                    self.found[regex].add(name)
            if number % max(1, NAMES_AT_ONCE // len(matchers)) == 0:
                yield

    def go_on(self) -> bool:
        """Look at some more names; whether that was all."""
        return next(self._work, self) is self


Finished = Callable[[str, dict[str, ResolvedRegex]], Decision[None]]


class RegexResolver:
    """`finished` decides what becomes of a result. What is kept here is of no use to a restart."""

    def __init__(self, context: GroupContext, timers: Timers, finished: Finished) -> None:
        self._context = context
        self._timers = timers
        self._finished = finished
        self._under_way: dict[str, _LookUp] = {}
        self._topics_seen: dict[str, Mapping[str, TopicImage]] = {}

    def change(self, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember) -> RegexChange:
        """What follows from a member's expression; raises when it is none."""
        if before.topic_regex == after.topic_regex:
            return RegexChange()
        if not after.topic_regex:
            return RegexChange(is_updated=True, affects_others=True)
        if after.topic_regex not in group.regexes:
            check_regex(after.topic_regex)
            return RegexChange(is_updated=True, is_unknown=True)
        return RegexChange(is_updated=True, affects_others=after.topic_regex in group.resolved)

    def look_up_if_due(
        self, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember, change: RegexChange
    ) -> None:
        if not change.is_unknown and not group.regexes:
            return
        if group.group_id in self._under_way:
            return
        now_ms = self._context.clock.now_ms()
        last_ms = max((one.timestamp_ms for one in group.resolved.values()), default=NEVER_MS)
        if now_ms <= last_ms + MIN_INTERVAL_MS:
            return
        regexes = set(group.regexes)
        if before.topic_regex != after.topic_regex and group.regexes.get(before.topic_regex) == 1:
            regexes.discard(before.topic_regex)
        if after.topic_regex:
            regexes.add(after.topic_regex)
        is_due = (
            change.is_unknown
            or len(regexes) != len(group.resolved)
            or self._has_new_topics(group.group_id)
            or now_ms > last_ms + self._context.settings().group_consumer_regex_refresh_interval_ms
        )
        if is_due and regexes:
            self._begin(group.group_id, sorted(regexes), now_ms)

    def forget(self, group_id: str) -> None:
        self._under_way.pop(group_id, None)
        self._topics_seen.pop(group_id, None)
        self._timers.cancel(_key(group_id))

    def _has_new_topics(self, group_id: str) -> bool:
        topics = self._context.image().topics
        seen = self._topics_seen.get(group_id)
        if seen is topics:
            return False
        return seen is None or any(name not in seen for name in topics)

    def _begin(self, group_id: str, regexes: Iterable[str], now_ms: int) -> None:
        image = self._context.image()
        matchers: dict[str, Matcher] = {}
        for regex in regexes:
            try:
                matchers[regex] = compile_regex(regex)
            except RegexError:
                matchers[regex] = compile_regex(NOTHING)
        look_up = _LookUp(matchers, image, now_ms)
        self._under_way[group_id] = look_up
        self._timers.schedule(_key(group_id), 0, lambda: self._go_on(group_id, look_up))

    def _go_on(self, group_id: str, look_up: _LookUp) -> Decision[None]:
        if self._under_way.get(group_id) is not look_up:
            return Decision(None)
        if not look_up.go_on():
            self._timers.schedule(_key(group_id), 0, lambda: self._go_on(group_id, look_up))
            return Decision(None)
        del self._under_way[group_id]
        resolved = {
            regex: ResolvedRegex(frozenset(topics), look_up.image.version, look_up.started_ms)
            for regex, topics in look_up.found.items()
        }
        decision = self._finished(group_id, resolved)

        def written(error: KafkaError | None) -> None:
            if error is None:
                self._topics_seen[group_id] = look_up.image.topics

        decision.written = written
        return decision


def check_regex(text: str) -> None:
    try:
        compile_regex(text)
    except RegexError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"`{text[:200]}` is no expression that is supported: {error}"
        ) from error


def regex_entry(group_id: str, regex: str, resolved: ResolvedRegex) -> Entry:
    return Entry(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
        ),
    )


def _key(group_id: str) -> str:
    return f"regex {group_id}"
