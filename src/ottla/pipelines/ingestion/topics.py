"""Which topics these are: of two of the same name, one made after the other was deleted, the ids differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.client.sync.reader_admin import ReaderAdmin

if TYPE_CHECKING:
    from ottla.client.admin.topic_pages import TopicDescription

# What brokers that know no ids tell.
_NO_ID = "A" * 22


def described(admin: ReaderAdmin, topics: Iterable[str]) -> list[TopicDescription]:
    """As brokers have them now. Raises for one that is not there."""
    found = admin.describe_topics(list(topics))
    found.raise_for_errors()
    return list(found.succeeded.values())


def ids_of(topics: Iterable[TopicDescription]) -> dict[str, str]:
    return {topic.name: topic.topic_id for topic in topics if topic.topic_id != _NO_ID}


def ids_of_those_there(brokers: Mapping[str, object], topics: Iterable[str]) -> dict[str, str]:
    """Without topics that brokers tell nothing about: what was read of one that is deleted by now was of that one."""
    with ReaderAdmin(config=brokers) as admin:
        return ids_of(admin.describe_topics(list(topics)).succeeded.values())
