"""From the API key in a header to the class of the request.

A message module is imported when its API is first asked for, so a process pays for the APIs it meets.
"""

from importlib import import_module

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request

CONTROLLER_APIS = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)
"""Spoken between Kafka's brokers and its controllers only; no broker offers them to clients, so none is declared."""

BROKER_APIS = tuple(key for key in ApiKey if key not in CONTROLLER_APIS)

_classes: dict[int, type[Request]] = {}


def request_class(api_key: int) -> type[Request] | None:
    """The request class of an API that brokers offer to clients, or None for any other number."""
    known = _classes.get(api_key)
    if known is not None:
        return known
    try:
        key = ApiKey(api_key)
    except ValueError:
        return None
    if key in CONTROLLER_APIS:
        return None
    module = import_module(f"ottla.protocol.messages.{key.name.lower()}")
    cls: type[Request] = getattr(module, "".join(word.capitalize() for word in key.name.split("_")) + "Request")
    _classes[api_key] = cls
    return cls
