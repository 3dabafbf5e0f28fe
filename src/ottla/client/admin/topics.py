"""Topics: create, delete, list, describe."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.client.admin.base import AdminPart, Progress
from ottla.client.admin.call import Outcomes
from ottla.client.admin.failures import failure
from ottla.client.admin.heard import until_gone, until_known
from ottla.client.admin.results import Results, merged
from ottla.client.admin.topic_pages import PartitionDescription, TopicDescription, described_topics
from ottla.client.errors import InvalidRequest, OttlaError
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.uuids import uuid_to_text

__all__ = ["CreatedTopic", "NewTopic", "PartitionDescription", "TopicDescription", "TopicListing", "TopicsAdmin"]

BROKER_DEFAULT = -1
# Kafka's controller writes at most 10,000 records for one request: one for each topic, partition and config.
MAX_CREATED_THINGS_PER_REQUEST = 5_000


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; what is left out is the broker's default.

    `assignments` names the brokers of each partition, the preferred leader first, in place of the two numbers.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        if self.assignments is not None and (self.partitions is not None or self.replication_factor is not None):
            raise InvalidRequest(f"{self.name}: give either assignments, or partitions and replication_factor")
        if self.partitions is not None and self.partitions < 1:
            raise InvalidRequest(f"{self.name}: partitions is {self.partitions}, there must be at least 1")
        if self.replication_factor is not None and self.replication_factor < 1:
            raise InvalidRequest(f"{self.name}: replication_factor is {self.replication_factor}, it must be at least 1")


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """`topic_id` is empty where nothing was created (`validate_only`); the numbers are -1 where the broker does not
    tell them."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicListing:
    name: str
    topic_id: str
    is_internal: bool
    partitions: int
    replication_factor: int


class TopicsAdmin(AdminPart):
    async def create_topics(
        self,
        topics: NewTopic | str | Iterable[NewTopic | str],
        *,
        validate_only: bool = False,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Results[str, CreatedTopic]:
        """Create topics, or check that it would work.

        With `wait`, brokers know the new topics and their leaders when this returns, so that nothing that is done next
        meets an unknown topic.

            results = await admin.create_topics([NewTopic("orders", partitions=6, configs={"retention.ms": "-1"})])
            results.raise_for_errors()
        """
        wanted = {topic.name: topic for topic in _new_topics(topics)}
        call = self._call(timeout)

        async def attempt(names: Sequence[str]) -> Outcomes[str, CreatedTopic]:
            parts = _by_weight([wanted[name] for name in names])
            return merged([await call.in_pieces(part, ask, len(part)) for part in parts])

        async def ask(names: Sequence[str]) -> Outcomes[str, CreatedTopic]:
            request = CreateTopicsRequest(
                topics=[_creatable(wanted[name]) for name in names],
                timeout_ms=call.attempt_ms(),
                validate_only=validate_only,
            )
            answer = await call.to_controller(request, CreateTopicsResponse)
            return {topic.name: _created(topic) for topic in answer.topics}

        results = await call.settle(wanted, attempt)
        if wait and not validate_only:
            # Brokers of older versions do not tell how many partitions they made: at least one.
            await until_known(call, {name: max(made.partitions, 1) for name, made in results.succeeded.items()})
        return results

    async def delete_topics(
        self,
        names: str | Iterable[str],
        *,
        wait: bool = False,
        progress: Progress | None = None,
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Delete topics and all that is in them. With `wait`, until no broker knows them any more."""
        call = self._call(timeout)

        async def ask(piece: Sequence[str]) -> Outcomes[str, None]:
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name) for name in piece],
                topic_names=list(piece),
                timeout_ms=call.attempt_ms(),
            )
            answer = await call.to_controller(request, DeleteTopicsResponse)
            return {
                topic.name: failure(topic.error_code, topic.error_message, topic.name) if topic.error_code else None
                for topic in answer.responses
                if topic.name is not None
            }

        results = await call.settle(_names(names), lambda open_names: call.in_pieces(open_names, ask))
        if wait:
            gone = await until_gone(call, list(results.succeeded), progress)
            return Results({name: results.errors.get(name) or gone.get(name) for name in results})
        return results

    async def list_topics(self, *, include_internal: bool = False, timeout: float | None = None) -> list[TopicListing]:
        """All topics of the cluster, by name."""
        call = self._call(timeout)

        async def ask() -> MetadataResponse:
            return await call.to_any(MetadataRequest(topics=None, allow_auto_topic_creation=False), MetadataResponse)

        answer = await call.ask_until_answered(ask)
        listed = [
            TopicListing(
                topic.name,
                uuid_to_text(topic.topic_id),
                topic.is_internal,
                len(topic.partitions),
                max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
            )
            for topic in answer.topics
            if topic.name is not None and (include_internal or not topic.is_internal)
        ]
        return sorted(listed, key=lambda topic: topic.name)

    async def describe_topics(
        self, names: str | Iterable[str], *, timeout: float | None = None
    ) -> Results[str, TopicDescription]:
        """Partitions, leaders and replicas of topics; of large topics in pages, where brokers have them."""
        call = self._call(timeout)
        return await call.settle(_names(names), lambda wanted: described_topics(call, wanted))


def _names(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _new_topics(topics: NewTopic | str | Iterable[NewTopic | str]) -> list[NewTopic]:
    given = [topics] if isinstance(topics, NewTopic | str) else list(topics)
    wanted = [NewTopic(topic) if isinstance(topic, str) else topic for topic in given]
    names = [topic.name for topic in wanted]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InvalidRequest(f"{', '.join(twice)}: named more than once")
    return wanted


def _by_weight(topics: Sequence[NewTopic]) -> list[list[str]]:
    """Names of topics that fit into one request each."""
    parts: list[list[str]] = [[]]
    weight = 0
    for topic in topics:
        own = 1 + (topic.partitions or len(topic.assignments or ()) or 1) + len(topic.configs)
        if parts[-1] and weight + own > MAX_CREATED_THINGS_PER_REQUEST:
            parts.append([])
            weight = 0
        parts[-1].append(topic.name)
        weight += own
    return [part for part in parts if part]


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=BROKER_DEFAULT if topic.partitions is None else topic.partitions,
        replication_factor=BROKER_DEFAULT if topic.replication_factor is None else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
            for number, brokers in enumerate(topic.assignments or ())
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in sorted(topic.configs.items())],
    )


def _created(topic: CreatableTopicResult) -> CreatedTopic | OttlaError:
    if topic.error_code:
        return failure(topic.error_code, topic.error_message, topic.name)
    return CreatedTopic(
        topic.name,
        uuid_to_text(topic.topic_id) if any(topic.topic_id) else "",
        topic.num_partitions,
        topic.replication_factor,
        {config.name: config.value for config in topic.configs or ()},
    )
