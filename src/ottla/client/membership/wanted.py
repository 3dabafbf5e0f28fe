"""What a consumer is subscribed to, as names of topics that exist or may exist."""

import logging
import re
from collections.abc import Collection

from ottla.client.cluster import Cluster, TopicInfo
from ottla.client.errors import BrokerUnavailable
from ottla.client.membership.assignors.model import java_order
from ottla.client.membership.interface import Topics
from ottla.client.network import Network
from ottla.client.types import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.regex import RegexError, compile_regex

logger = logging.getLogger(__name__)

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")


class Wanted:
    """Keeps the metadata of what is subscribed up to date, too. All topics of the cluster where it is a pattern, unless
    the broker resolves it (`expression`)."""

    def __init__(self, network: Network, *, exclude_internal_topics: bool, by_broker: bool = False) -> None:
        self.topics: Topics | None = None
        self.expression: str | None = None
        self._by_broker = by_broker
        self._network = network
        self._exclude_internal_topics = exclude_internal_topics
        self._watched: frozenset[str] = frozenset()
        self._before_pattern: Cluster | None = None
        self._is_idle = False

    def set(self, topics: Topics | None) -> None:
        self.topics = topics
        self.expression = self._expression_of(topics)
        is_pattern = isinstance(topics, re.Pattern) and self.expression is None
        self._before_pattern = self._network.cluster if is_pattern else None
        self._network.watch_all_topics(is_pattern)
        if is_pattern:
            self._network.request_update()
        self.watch(topics if isinstance(topics, frozenset) else frozenset())

    def note_share(self, group_id: str, owned: Collection[TopicPartition]) -> None:
        """Say once, each time that the group leaves this member without partitions, that it has none."""
        if not owned and not self._is_idle:
            topics = self.topics
            logger.info(
                "group %s gives this consumer no partitions of %s: other members read them all, or there are none",
                group_id,
                topics.pattern if isinstance(topics, re.Pattern) else ", ".join(sorted(topics or ())),
            )
        self._is_idle = not owned

    def resolve_here(self) -> None:
        """The broker does not take expressions."""
        self._by_broker = False
        self.set(self.topics)

    def _expression_of(self, topics: Topics | None) -> str | None:
        """A pattern that means the same to a broker, which knows RE2's syntax only and spares no internal topics."""
        if not self._by_broker or not isinstance(topics, re.Pattern) or topics.flags != re.UNICODE:
            return None
        try:
            compile_regex(topics.pattern)
        except RegexError:
            return None
        is_spared = self._exclude_internal_topics and any(map(topics.fullmatch, INTERNAL_TOPICS))
        return None if is_spared else topics.pattern

    def watch(self, names: frozenset[str]) -> None:
        """Beside its own topics a leader watches those of the others; others only their own."""
        own = self.topics if isinstance(self.topics, frozenset) else frozenset()
        names |= own
        self._network.watch_topics(sorted(names - self._watched, key=java_order))
        self._network.unwatch_topics(sorted(self._watched - names, key=java_order))
        self._watched = names

    def names(self) -> frozenset[str]:
        """Where it is a pattern, those of the topics that match."""
        if self.topics is None or isinstance(self.topics, frozenset):
            return self.topics or frozenset()
        return frozenset(name for name, info in self._network.cluster.topics.items() if self._matches(info))

    def has(self, name: str) -> bool:
        """Whether a topic is subscribed; also one that a leader knows of already and this member does not."""
        if isinstance(self.topics, re.Pattern):
            return self.topics.fullmatch(name) is not None
        return self.topics is not None and name in self.topics

    def _matches(self, info: TopicInfo) -> bool:
        return self.has(info.name) and not (self._exclude_internal_topics and info.is_internal)

    async def known(self, names: frozenset[str], timeout_seconds: float) -> None:
        """Wait until it is known of each topic what it has, or that it does not exist; but not longer than that.

        The first answer after a pattern was set may be to a question from before: one without a match is asked again.
        """
        network = self._network
        try:
            if self._before_pattern is not None:
                await network.updated(self._before_pattern, timeout_seconds)
                if not self.names():
                    network.request_update()
                    await network.updated(network.cluster, timeout_seconds)
                self._before_pattern = None
            while any(name not in network.cluster.topics and not network.topic_error(name) for name in names):
                await network.updated(network.cluster, timeout_seconds)
        except BrokerUnavailable:
            return

    def refused(self) -> tuple[ErrorCode, list[str]] | None:
        """Subscribed topics that the broker keeps from this consumer, or whose names are none."""
        names = sorted(self.topics, key=java_order) if isinstance(self.topics, frozenset) else []
        for code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION):
            refused = [name for name in names if self._network.topic_error(name) == code]
            if refused:
                return code, refused
        return None
