"""Which names topics may have.

A name becomes a directory (`<name>-<partition>`), a node of the store and part of metric names. In metric names '.'
is written as '_', so two topics whose names differ in nothing else cannot both exist.
"""

import re
from collections.abc import Iterable

from ottla.protocol.errors import ErrorCode, KafkaError

MAX_NAME_LENGTH = 249
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC, "__share_group_state"})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_problem(name: str) -> str | None:
    """Why no topic can have this name; None when one can."""
    problem = None
    if not name:
        problem = "it is empty"
    elif name in (".", ".."):
        problem = f"{name!r} is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        problem = f"it has {len(name)} characters, at most {MAX_NAME_LENGTH} are allowed"
    elif not _LEGAL.fullmatch(name):
        problem = f"{name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
    return None if problem is None else f"Topic name is invalid: {problem}."


def check_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION, saying why, for a name that no topic can have."""
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def has_collision_characters(name: str) -> bool:
    return "." in name or "_" in name


def metric_name(name: str) -> str:
    return name.replace(".", "_")


def names_by_metric(names: Iterable[str]) -> dict[str, str]:
    """For each name as metrics have it, the topic that uses it."""
    return {metric_name(name): name for name in names if has_collision_characters(name)}
