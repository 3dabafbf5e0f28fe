"""Topics for those who need to know them before they send: what is known of one, once something is.

Everything here runs in the loop's thread.
"""

from collections.abc import Awaitable, Callable

from ottla.client.cluster import TopicInfo
from ottla.client.errors import BrokerUnavailable, error_of
from ottla.client.network import Network
from ottla.client.producer._twin import twin
from ottla.client.producer.idle_topics import IdleTopics
from ottla.client.producer.partitions import TopicQueues
from ottla.client.producer.unknown_topics import UnknownTopics, check_topic
from ottla.protocol.errors import ErrorCode
from ottla.runtime import Clock


class KnownTopics:
    """`turn` puts in what waits for a topic that is known by then; `next_turn` is over when somebody else did one."""

    def __init__(
        self,
        appender: "twin.Appender",
        network: Network,
        idle_topics: IdleTopics,
        unknown_topics: UnknownTopics,
        clock: Clock,
        max_block_seconds: float,
        *,
        turn: Callable[[], None],
        next_turn: Callable[[], Awaitable[None]],
    ) -> None:
        self._appender = appender
        self._network = network
        self._unknown_topics = unknown_topics
        self._idle_topics = idle_topics
        self._clock = clock
        self._max_block_seconds = max_block_seconds
        self._turn = turn
        self._next_turn = next_turn

    async def info(self, name: str) -> TopicInfo:
        """What is known of a topic; waits for it for `max.block.ms`. UnknownTopic when there is none by then."""
        check_topic(name)
        now = self._clock.monotonic()
        deadline = now + self._max_block_seconds
        self._idle_topics.used(name, now)
        while True:
            cluster = self._network.cluster
            info = cluster.topics.get(name)
            if info is not None and info.partitions:
                return info
            code = ErrorCode(self._network.topic_error(name))
            if code is not ErrorCode.NONE and not code.retriable:
                raise error_of(code, f"topic {name}: {code.name}")
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise _missing(name)
            try:
                await self._network.updated(cluster, left)
            except BrokerUnavailable:
                if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise _missing(name) from None
                raise

    async def queues(self, name: str) -> TopicQueues:
        """The queues of a topic, once everything that was sent to it before is in them, or was given up: records that
        wait for their room must not be overtaken. UnknownTopic when there is none."""
        info = await self.info(name)
        self._turn()
        queues = self._unknown_topics.meet(info, self._network.cluster)
        while not queues.is_open:
            if self._appender.refuses:
                self._appender.refuse()
            await self._next_turn()
        return queues


def _missing(name: str) -> Exception:
    return error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist: create it")
