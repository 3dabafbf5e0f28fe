"""What an answer of a coordinator means to a member: go on, or how to try again; what is final is raised."""

from enum import Enum, auto

from ottla.client.errors import BrokerError, error_of
from ottla.protocol.errors import ErrorCode


class Next(Enum):
    """What to do after an answer."""

    GO_ON = auto()
    AGAIN = auto()
    """At once, with what the answer changed."""
    LATER = auto()
    """After a pause."""
    ELSEWHERE = auto()
    """After a pause, with a coordinator that is looked up again."""


MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})

_ADVICE = {
    ErrorCode.FENCED_INSTANCE_ID: (
        "another consumer has joined group {group} as {instance}: give every consumer a group.instance.id of its own"
    ),
    ErrorCode.UNRELEASED_INSTANCE_ID: (
        "group {group} still has a member {instance}: give every consumer a group.instance.id of its own, or wait "
        "until the session of the other has ended"
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "the members of group {group} have no assignor in common with this one, or are no consumers: "
        "set partition.assignment.strategy to what they have"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "the broker does not allow this session.timeout.ms: it must be within its group.min.session.timeout.ms and "
        "group.max.session.timeout.ms"
    ),
    ErrorCode.INVALID_GROUP_ID: "{group!r} is no name for a group: set group.id",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "not allowed to read with group {group}: ask for READ on it",
    ErrorCode.GROUP_MAX_SIZE_REACHED: (
        "group {group} has as many members as it may: raise the broker's group.max.size, or use fewer consumers"
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: (
        "group {group} is of the other protocol on this broker: set group.protocol to what its other members have"
    ),
    ErrorCode.UNSUPPORTED_ASSIGNOR: (
        "the broker has no such assignor: set group.remote.assignor to one of its group.consumer.assignors"
    ),
    ErrorCode.INVALID_REGULAR_EXPRESSION: "the broker does not take the pattern as an expression of RE2's syntax",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for group.protocol=consumer, or has it switched off",
}


def final_error(code: int, group_id: str, instance_id: str | None, told: str | None = None) -> BrokerError:
    """The exception that ends a membership."""
    known = ErrorCode(code)
    advice = _ADVICE.get(known, "group {group}: the coordinator answered {code}")
    text = advice.format(group=group_id, instance=instance_id, code=known.name)
    return error_of(known, f"{known.name}: {text}" + (f" ({told})" if told else ""))
