"""Waiting for the metadata of topics, and what the brokers say about those that cannot be read."""

from collections.abc import Iterable
from contextlib import suppress

from ottla.client.errors import BrokerUnavailable, OttlaError, UnknownTopic, error_of
from ottla.client.network import Network
from ottla.protocol.errors import ErrorCode
from ottla.runtime import Clock

# A topic that was created a moment ago is not known everywhere at once.
_NEW_TOPIC_SECONDS = 5.0
_LOOK_SECONDS = 1.0

_FINAL = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})


def final_error(network: Network, name: str) -> OttlaError | None:
    """What the last answer said about a topic, where asking again will not help."""
    code = ErrorCode(network.topic_error(name))
    return error_of(code, f"topic {name!r} cannot be read: {code.name}") if code in _FINAL else None


async def know_topics(network: Network, clock: Clock, names: Iterable[str], deadline: float) -> None:
    """Wait until the metadata has these topics, and keep it up to date; UnknownTopic when they do not exist."""
    missing = sorted(name for name in names if name not in network.cluster.topics)
    if not missing:
        return
    network.watch_topics(missing)
    try:
        await _wait_for_topics(network, clock, missing, deadline)
    except BaseException:
        network.unwatch_topics(missing)
        raise


async def _wait_for_topics(network: Network, clock: Clock, missing: list[str], deadline: float) -> None:
    believed_until = clock.monotonic() + _NEW_TOPIC_SECONDS
    while unknown := [name for name in missing if name not in network.cluster.topics]:
        for name in unknown:
            error = final_error(network, name)
            if error is not None:
                raise error
        now = clock.monotonic()
        absent = [name for name in unknown if network.topic_error(name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        if absent and now >= min(believed_until, deadline):
            raise UnknownTopic(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no topic {absent[0]!r}: create it, or correct the name",
            )
        if now >= deadline:
            raise BrokerUnavailable(f"nothing is known in time of the topics {', '.join(unknown)}")
        network.request_update()
        with suppress(BrokerUnavailable):
            await network.updated(network.cluster, min(deadline - now, _LOOK_SECONDS))
