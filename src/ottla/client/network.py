"""What the clients see of their connections: a cluster that they can ask. The simulation has another one.

All of it belongs to one event loop.
"""

from asyncio import Future
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, Protocol, TypeVar

from ottla.client.cluster import Cluster, Node
from ottla.protocol.message import Request, Response
from ottla.runtime.promise import Promise

Answer = TypeVar("Answer", bound=Response)


COORDINATOR_LINK = 2**31 - 1
"""A group's coordinator has a connection of its own, so that heartbeats and commits do not wait behind a fetch that
waits for records. What `coordinator` answers for a group is this minus the broker's number, as in Kafka's own clients;
`ask` takes it like any other number."""


QUESTION_LINK = 2**32 - 1
"""Questions to a broker that a fetch waits at, too: it answers the requests of a connection in turn."""


def question_link(node_id: int) -> int:
    """The number of another connection to the same broker."""
    return QUESTION_LINK - node_id


def broker_of(node_id: int) -> int:
    """The number of the broker behind that of a connection; any other number is one already."""
    if node_id > COORDINATOR_LINK:
        return QUESTION_LINK - node_id
    return COORDINATOR_LINK - node_id if node_id > COORDINATOR_LINK // 2 else node_id


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1


class Network(Protocol):
    """`ask` and its sisters raise BrokerUnavailable when the connection breaks or no answer comes in time (the request
    may have been carried out), InvalidAnswer when the answer is none, UnsupportedByBroker when the broker has no
    version of the request in common, AuthenticationFailed; never what is inside of an answer: error codes are the
    caller's.
    """

    @property
    def cluster(self) -> Cluster:
        """What is known now."""
        ...

    def on_cluster(self, changed: Callable[[Cluster, Cluster], None]) -> None:
        """Call `changed(old, new)` whenever the cluster was replaced, in the loop's thread."""
        ...

    # Topics that are kept up to date.

    def watch_topics(self, names: Iterable[str]) -> None:
        """Keep these up to date from now on, beside those that are watched already. Parts of a client may watch the
        same topic: it is forgotten when each of them has unwatched it as often as it watched it."""
        ...

    def unwatch_topics(self, names: Iterable[str]) -> None: ...

    def watch_all_topics(self, wanted: bool) -> None:
        """For subscriptions by pattern: all topics of the cluster are in it."""
        ...

    def request_update(self) -> None:
        """Something known turned out to be wrong (not the leader, unknown topic): ask again soon, not more often than
        `retry.backoff.ms` allows."""
        ...

    async def updated(self, than: Cluster, timeout_seconds: float) -> Cluster:
        """The first cluster that is newer than that one; BrokerUnavailable when there is none in time."""
        ...

    def learn_leader(
        self, topic: str, partition: int, leader: int, leader_epoch: int, endpoints: Iterable[Node] = ()
    ) -> None:
        """A broker named the leader when it refused to be it (`current_leader` and `node_endpoints` of Produce and
        Fetch). Taken when the epoch is newer than what is known."""
        ...

    def topic_error(self, name: str) -> int:
        """The error code that the last answer had for a watched topic; 0 when it had none."""
        ...

    # Questions.

    async def ask(
        self,
        node_id: int,
        request: Request,
        answer: type[Answer],
        *,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
    ) -> Answer:
        """One request to one broker, in the newest version that both sides have, that can carry it and that is not
        above `max_version`. Requests to the same broker are pipelined and answered in their order. `request.timeout.ms`
        where no time is given."""
        ...

    async def ask_beside(self, node_id: int, request: Request, answer: type[Answer]) -> Answer:
        """The same on another connection where the usual one owes an answer: that may be a fetch, which waits for
        records."""
        ...

    def ask_now(self, node_id: int, request: Request, *, max_version: int | None = None) -> Promise[Any] | None:
        """The same in this very call, without a task, where a connection is open and not throttled; None where there
        is none: nothing was sent then, and `ask` is the way. The promise comes to the answer, or to what `ask` would
        raise, in the turn of the loop that receives it."""
        ...

    def is_open(self, node_id: int) -> bool:
        """Whether `ask_now` would send a request."""
        ...

    async def reach(self, node_id: int) -> None:
        """Return when `ask_now` would send a request, after one attempt to connect at most; raises what `ask` would."""
        ...

    def tell(self, node_id: int, request: Request, *, max_version: int | None = None) -> "Future[None] | None":
        """One request that brokers do not answer, Produce with `acks=0`, in this very call; None where `ask_now` gives
        it. The future is done once all of it was handed to the system, which is as much as can be known, or comes to
        what kept it from that. Whoever waits is told in a later turn of the loop, never in this call."""
        ...

    async def ask_any(
        self,
        request: Request,
        answer: type[Answer],
        *,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
    ) -> Answer:
        """To the broker that has the least to do, preferably one that is connected."""
        ...

    async def ask_controller(
        self,
        request: Request,
        answer: type[Answer],
        *,
        timeout_seconds: float | None = None,
        max_version: int | None = None,
    ) -> Answer: ...

    def version_of(self, node_id: int, request: type[Request]) -> int | None:
        """The version in which `ask` would send it; None while the broker has not been asked for its versions."""
        ...

    def feature_level(self, name: str) -> int:
        """The level of a feature that the cluster agreed on, such as `transaction.version`; 0 while none is known."""
        ...

    async def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        """Whom to `ask` about a group or a transactional id, remembered until `forget_coordinator`.

        Tries again while there is none yet, for `default.api.timeout.ms`; BrokerError for what is final.
        """
        ...

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None: ...

    def is_throttled(self, node_id: int) -> bool:
        """Whether a quota of the broker asked for patience (`throttle_time_ms`); `ask` waits by itself."""
        ...

    async def backoff(self, attempt: int) -> None:
        """Wait `retry.backoff.ms`, doubled with every attempt up to `retry.backoff.max.ms`, with jitter."""
        ...

    async def close(self) -> None: ...
