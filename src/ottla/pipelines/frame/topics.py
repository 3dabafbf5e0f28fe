"""The topics of a pipeline, made before its queries look for them."""

from collections.abc import Iterable, Mapping

from ottla.client.admin.topics import NewTopic
from ottla.client.errors import BrokerError
from ottla.client.sync.admin import Admin
from ottla.pipelines.frame.pipeline import Pipeline, Topic
from ottla.protocol.errors import ErrorCode


def ensure_topics(pipeline: Pipeline, brokers: Mapping[str, object]) -> None:
    """All that it reads or writes."""
    create_topics(pipeline.topics, brokers)


def create_topics(topics: Iterable[Topic], brokers: Mapping[str, object]) -> None:
    """Those that are there already stay as they are."""
    wanted = [NewTopic(one.name, one.partitions, configs=dict(one.configs)) for one in topics]
    with Admin(config=brokers) as admin:
        for error in admin.create_topics(wanted).errors.values():
            if not (isinstance(error, BrokerError) and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
                raise error
