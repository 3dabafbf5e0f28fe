"""Decisions about topics: to create, to delete, to give more partitions. Pure functions of an image and requests."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ottla.cluster import paths, registry
from ottla.cluster.config_changes import Validator
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.placement import PlaceableBroker, place_replicas
from ottla.cluster.requests import (
    USE_DEFAULT,
    Charge,
    ControllerSettings,
    CreatePartitionsResult,
    CreateTopicResult,
    Decision,
    DeleteTopicResult,
    NewPartitions,
    NewTopic,
    free_of_charge,
)
from ottla.cluster.topic_names import (
    CLUSTER_METADATA_TOPIC,
    check_topic_name,
    has_collision_characters,
    metric_name,
    names_by_metric,
)
from ottla.coordination.store import MAX_NODE_BYTES, Create, Delete, Operation, Set
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.uuids import ZERO_UUID, uuid_to_text
from ottla.runtime import IdSource

MAX_PARTITIONS_PER_REQUEST = 10_000


class TopicDecisions:
    """What decisions about topics depend on besides the image and the request."""

    def __init__(
        self,
        settings: ControllerSettings,
        validate_configs: Validator,
        ids: IdSource,
        controller_epoch: int,
        charge: Charge = free_of_charge,
    ) -> None:
        self._settings = settings
        self._validate_configs = validate_configs
        self._ids = ids
        self._controller_epoch = controller_epoch
        self._charge = charge

    # Creating topics

    def create_topics(
        self, image: ClusterImage, requests: Sequence[NewTopic], planned_ids: dict[str, bytes]
    ) -> list[Decision[CreateTopicResult]]:
        """One decision for each name, in the order asked for.

        `planned_ids` remembers the topic ids of this request: when a topic turns out to exist under the very id that
        was planned for it, an earlier attempt had succeeded without anyone hearing of it, and that is a success.
        """
        decisions: list[Decision[CreateTopicResult]] = []
        duplicates = _duplicates(request.name for request in requests)
        metric_names: dict[str, str] | None = None
        total = sum(self._requested_partitions(request) for request in requests)
        for request in {request.name: request for request in requests}.values():
            try:
                if request.name in duplicates:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                if total > MAX_PARTITIONS_PER_REQUEST:
                    raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
                if metric_names is None and has_collision_characters(request.name):
                    metric_names = names_by_metric(image.topics)
                decisions.append(self._create_topic(image, request, metric_names or {}, planned_ids))
            except KafkaError as error:
                decisions.append(Decision(CreateTopicResult(request.name, error.code, error.message)))
        return decisions

    def _requested_partitions(self, request: NewTopic) -> int:
        if request.assignments:
            return len(request.assignments)
        if request.num_partitions == USE_DEFAULT:
            return self._settings.num_partitions
        return max(0, request.num_partitions)

    def _create_topic(
        self,
        image: ClusterImage,
        request: NewTopic,
        metric_names: Mapping[str, str],
        planned_ids: dict[str, bytes],
    ) -> Decision[CreateTopicResult]:
        name = request.name
        existing = image.topics.get(name)
        if existing is not None:
            if existing.topic_id == planned_ids.get(name):
                return Decision(_created(existing))
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if name == CLUSTER_METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        check_topic_name(name)
        collision = metric_names.get(metric_name(name)) if has_collision_characters(name) else None
        if collision is not None:
            message = f"Topic '{name}' collides with existing topic: {collision}"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        configs = self._checked_configs(request.configs)
        assignment = self._assignment(image, request)
        self._charge(name, len(assignment))
        topic_id = planned_ids.get(name)
        while topic_id is None or topic_id in image.topics_by_id:
            topic_id = self._ids.uuid()
        planned_ids[name] = topic_id
        topic = TopicImage(name, topic_id, _new_partitions(image, 0, assignment), configs)
        return Decision(_created(topic), self._creation(topic))

    def _checked_configs(self, configs: Mapping[str, str | None]) -> dict[str, str]:
        missing = sorted(name for name, value in configs.items() if value is None)
        if missing:
            message = f"Null value not supported for topic configs: {','.join(missing)}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        checked = {name: value for name, value in configs.items() if value is not None}
        self._validate_configs(checked)
        return checked

    def _assignment(self, image: ClusterImage, request: NewTopic) -> list[tuple[int, ...]]:
        if request.assignments:
            return _manual_assignment(image, request)
        if request.replication_factor < USE_DEFAULT or request.replication_factor == 0:
            message = "Replication factor must be larger than 0, or -1 to use the default value."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
        if request.num_partitions < USE_DEFAULT or request.num_partitions == 0:
            message = "Number of partitions must be larger than 0, or -1 to use the default value."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
        replication_factor = request.replication_factor
        if replication_factor == USE_DEFAULT:
            replication_factor = self._settings.default_replication_factor
        return place_replicas(_placeable(image), self._requested_partitions(request), replication_factor, self._ids)

    def _creation(self, topic: TopicImage) -> tuple[Operation, ...]:
        operations: list[Operation] = [Create(paths.topic(topic.name), _topic_data(topic.topic_id, topic.partitions))]
        operations.extend(
            self._create_chunk(topic.name, topic.topic_id, chunk, topic.partitions)
            for chunk in range(paths.chunk_count(len(topic.partitions)))
        )
        if topic.configs:
            operations.append(Create(paths.topic_config(topic.name), registry.encode_configs(topic.configs)))
        return tuple(operations)

    def _create_chunk(self, name: str, topic_id: bytes, chunk: int, partitions: Sequence[PartitionImage]) -> Create:
        first = chunk * paths.PARTITIONS_PER_CHUNK
        members = partitions[first : first + paths.PARTITIONS_PER_CHUNK]
        return Create(paths.topic_state(name, chunk), registry.encode_state(topic_id, self._controller_epoch, members))

    # Deleting topics

    def delete_topics(
        self, image: ClusterImage, topics: Sequence[str | bytes], planned_ids: dict[str | bytes, tuple[str, bytes]]
    ) -> list[Decision[DeleteTopicResult]]:
        """One decision for each name (str) or topic id (bytes).

        `planned_ids` remembers what this request set out to delete: when that is gone, an attempt had succeeded.
        """
        decisions = []
        duplicates = _duplicates(topics)
        chosen: set[bytes] = set()
        supplied_twice = _supplied_twice(image, topics)
        for asked in dict.fromkeys(topics):
            if asked in duplicates:
                decisions.append(_refused_duplicate(asked))
                continue
            if asked in supplied_twice:
                if isinstance(asked, str):
                    decisions.append(_refused_pair(asked, supplied_twice[asked]))
                continue
            try:
                if not self._settings.delete_topic_enable:
                    raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
                decisions.append(_delete_topic(image, asked, chosen, planned_ids, self._charge))
            except KafkaError as error:
                decisions.append(Decision(_not_deleted(image, asked, error)))
        return decisions

    # More partitions

    def create_partitions(
        self, image: ClusterImage, requests: Sequence[NewPartitions], planned: dict[str, bytes]
    ) -> list[Decision[CreatePartitionsResult]]:
        """One decision for each name. `planned` remembers the data written, to recognise it when it is there."""
        decisions = []
        duplicates = _duplicates(request.name for request in requests)
        for request in {request.name: request for request in requests}.values():
            try:
                if request.name in duplicates:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                operations = self._create_partitions(image, request, planned)
                decisions.append(Decision(CreatePartitionsResult(request.name), operations))
            except KafkaError as error:
                decisions.append(Decision(CreatePartitionsResult(request.name, error.code, error.message)))
        return decisions

    def _create_partitions(
        self, image: ClusterImage, request: NewPartitions, planned: dict[str, bytes]
    ) -> tuple[Operation, ...]:
        topic = image.topics.get(request.name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{request.name}'.")
        count = len(topic.partitions)
        if planned.get(request.name) == _topic_data(topic.topic_id, topic.partitions):
            return ()
        if request.count == count:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
        if request.count < count:
            message = (
                f"The topic {topic.name} currently has {count} partition(s); {request.count} would not be an increase."
            )
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
        added = request.count - count
        if added > MAX_PARTITIONS_PER_REQUEST:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        if request.assignments is not None and len(request.assignments) != added:
            message = (
                f"Attempted to add {added} additional partition(s), "
                f"but {len(request.assignments)} assignment(s) were specified."
            )
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        self._charge(request.name, added)
        if request.assignments is None:
            assignment = place_replicas(_placeable(image), added, topic.replication_factor, self._ids)
        else:
            for replicas in request.assignments:
                check_replicas(image, replicas, topic.replication_factor)
            assignment = list(request.assignments)
        partitions = topic.partitions + _new_partitions(image, count, assignment)
        data = _topic_data(topic.topic_id, partitions)
        planned[request.name] = data
        return (Set(paths.topic(topic.name), data, topic.node_version), *self._grown_chunks(topic, partitions))

    def _grown_chunks(self, topic: TopicImage, partitions: Sequence[PartitionImage]) -> Iterable[Operation]:
        for chunk in range(paths.chunk_count(len(partitions))):
            first = chunk * paths.PARTITIONS_PER_CHUNK
            after = first + paths.PARTITIONS_PER_CHUNK
            if chunk >= len(topic.state_versions):
                yield self._create_chunk(topic.name, topic.topic_id, chunk, partitions)
            elif len(topic.partitions) < min(after, len(partitions)):
                data = registry.encode_state(topic.topic_id, self._controller_epoch, partitions[first:after])
                yield Set(paths.topic_state(topic.name, chunk), data, topic.state_versions[chunk])


def _delete_topic(
    image: ClusterImage,
    asked: str | bytes,
    chosen: set[bytes],
    planned_ids: dict[str | bytes, tuple[str, bytes]],
    charge: Charge,
) -> Decision[DeleteTopicResult]:
    topic = image.topics.get(asked) if isinstance(asked, str) else image.topics_by_id.get(asked)
    planned = planned_ids.get(asked)
    if planned is not None and (topic is None or topic.topic_id != planned[1]):
        return Decision(DeleteTopicResult(*planned))
    if topic is None:
        if isinstance(asked, str):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{asked}'.")
        if asked == ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with id {uuid_to_text(asked)}.")
    if topic.topic_id in chosen:
        message = "The provided topic name maps to an ID that was already supplied."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    charge(asked, len(topic.partitions))
    chosen.add(topic.topic_id)
    planned_ids[asked] = (topic.name, topic.topic_id)
    operations: list[Operation] = [
        Delete(paths.topic_state(topic.name, chunk)) for chunk in range(len(topic.state_versions))
    ]
    operations.append(Delete(paths.topic(topic.name), topic.node_version))
    if topic.config_version >= 0:
        operations.append(Delete(paths.topic_config(topic.name)))
    return Decision(DeleteTopicResult(topic.name, topic.topic_id), tuple(operations))


def _supplied_twice(image: ClusterImage, topics: Sequence[str | bytes]) -> dict[str | bytes, bytes]:
    """The names and ids of topics that are asked for by both; none of them is deleted."""
    by_id = {asked for asked in topics if isinstance(asked, bytes)}
    found: dict[str | bytes, bytes] = {}
    for asked in topics:
        topic = image.topics.get(asked) if isinstance(asked, str) else None
        if topic is not None and topic.topic_id in by_id:
            found[topic.name] = found[topic.topic_id] = topic.topic_id
    return found


def _refused_duplicate(asked: str | bytes) -> Decision[DeleteTopicResult]:
    if isinstance(asked, str):
        return Decision(DeleteTopicResult(asked, ZERO_UUID, ErrorCode.INVALID_REQUEST, "The topic is named twice."))
    return Decision(DeleteTopicResult(None, asked, ErrorCode.INVALID_REQUEST, "The topic's id is given twice."))


def _refused_pair(name: str, topic_id: bytes) -> Decision[DeleteTopicResult]:
    message = "The topic is given by its name and by its id."
    return Decision(DeleteTopicResult(name, topic_id, ErrorCode.INVALID_REQUEST, message))


def _not_deleted(image: ClusterImage, asked: str | bytes, error: KafkaError) -> DeleteTopicResult:
    if isinstance(asked, str):
        return DeleteTopicResult(asked, ZERO_UUID, error.code, error.message)
    topic = image.topics_by_id.get(asked)
    return DeleteTopicResult(None if topic is None else topic.name, asked, error.code, error.message)


def _created(topic: TopicImage) -> CreateTopicResult:
    return CreateTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=topic.configs,
    )


def _duplicates(names: Iterable[str | bytes]) -> set[str | bytes]:
    return {name for name, count in Counter(names).items() if count > 1}


def _placeable(image: ClusterImage) -> list[PlaceableBroker]:
    return [PlaceableBroker(broker.node_id, broker.rack) for broker in image.active_brokers()]


def _manual_assignment(image: ClusterImage, request: NewTopic) -> list[tuple[int, ...]]:
    for given, what in ((request.replication_factor, "replication factor"), (request.num_partitions, "numPartitions")):
        if given != USE_DEFAULT:
            message = f"A manual partition assignment was specified, but {what} was not set to -1."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    by_index: dict[int, tuple[int, ...]] = {}
    for index, replicas in request.assignments:
        if index in by_index:
            message = f"Found multiple manual partition assignments for partition {index}"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        expected = len(next(iter(by_index.values()))) if by_index else None
        check_replicas(image, replicas, expected)
        by_index[index] = replicas
    if sorted(by_index) != list(range(len(by_index))):
        message = f"Partitions must be numbered from 0 without gaps, these are {sorted(by_index)}."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return [by_index[index] for index in range(len(by_index))]


def check_replicas(image: ClusterImage, replicas: Sequence[int], expected_count: int | None) -> None:
    """INVALID_REPLICA_ASSIGNMENT unless a partition can have these replicas: `expected_count` of them, if it says."""
    problem = None
    unknown = [node_id for node_id in replicas if node_id not in image.brokers]
    if not replicas:
        problem = "includes an empty replica list"
    elif unknown:
        problem = f"includes broker {unknown[0]}, but no such broker is registered"
    elif len(set(replicas)) != len(replicas):
        problem = f"includes a broker more than once: {list(replicas)}"
    elif expected_count not in (None, len(replicas)):
        problem = f"has a partition with {len(replicas)} replica(s) where the others have {expected_count}"
    elif not any(image.brokers[node_id].is_active for node_id in replicas):
        problem = f"has a partition whose brokers are all fenced or shutting down: {list(replicas)}"
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {problem}.")


def _new_partitions(
    image: ClusterImage, first_index: int, assignment: Sequence[tuple[int, ...]]
) -> tuple[PartitionImage, ...]:
    """Partitions as they begin: all active replicas in sync, the first of them leading, epochs at 0."""
    active = {broker.node_id for broker in image.active_brokers()}
    partitions = []
    for index, replicas in enumerate(assignment, start=first_index):
        isr = tuple(replica for replica in replicas if replica in active)
        partitions.append(PartitionImage(index, isr[0], 0, replicas, isr, 0))
    return tuple(partitions)


def _topic_data(topic_id: bytes, partitions: Sequence[PartitionImage]) -> bytes:
    data = registry.encode_topic(topic_id, [partition.replicas for partition in partitions])
    if len(data) > MAX_NODE_BYTES:
        message = f"A topic of {len(partitions)} partitions is too large to be stored."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    return data
