"""What is written in the nodes: JSON documents with a `version`, so that later releases can tell what they read.

Everything read is checked; `CorruptNode` names the path, what was expected and what came. Partition state is kept
as bare lists, since a cluster has many: `[leader, leader epoch, partition epoch, [isr ...]]`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from ottla.cluster.image import BrokerRegistration, Endpoint, PartitionImage
from ottla.cluster.quotas import Limits, QuotaEntity
from ottla.coordination.store import Node
from ottla.protocol.uuids import uuid_from_text, uuid_to_text

FORMAT_VERSION = 1

Field = TypeVar("Field", int, str, bool, dict[str, Any], list[Any])


class CorruptNode(Exception):
    """A node holds something else than this release writes."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


@dataclass(frozen=True, slots=True)
class TopicRecord:
    topic_id: bytes
    assignment: tuple[tuple[int, ...], ...]
    node_version: int


class PartitionState(NamedTuple):
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StateRecord:
    """One chunk of partition state."""

    topic_id: bytes
    partitions: tuple[PartitionState, ...]
    node_version: int


@dataclass(frozen=True, slots=True)
class ControllerRecord:
    """Who was elected. The session tells whether the node is one's own when the answer to creating it got lost."""

    broker_id: int
    epoch: int
    session_id: int


def encode(document: Mapping[str, object]) -> bytes:
    return json.dumps({"version": FORMAT_VERSION, **document}, separators=(",", ":")).encode()


def decode(node: Node) -> dict[str, Any]:
    try:
        document = json.loads(node.data)
    except ValueError as error:
        raise CorruptNode(node.path, f"expected JSON: {error}") from error
    if not isinstance(document, dict):
        raise CorruptNode(node.path, f"expected a JSON object, found {type(document).__name__}")
    version = document.get("version")
    if version != FORMAT_VERSION:
        raise CorruptNode(node.path, f"expected format version {FORMAT_VERSION}, found {version!r}")
    return document


def _field(node: Node, document: Mapping[str, Any], name: str, kind: type[Field]) -> Field:
    value = document.get(name)
    if type(value) is not kind:
        raise CorruptNode(node.path, f"expected {kind.__name__} as {name!r}, found {value!r}")
    return value


def _uuid(node: Node, document: Mapping[str, Any], name: str) -> bytes:
    try:
        return uuid_from_text(_field(node, document, name, str))
    except ValueError as error:
        raise CorruptNode(node.path, f"{name!r}: {error}") from error


def _is_broker_list(value: object) -> bool:
    return type(value) is list and {*map(type, value)} <= {int}


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode({"cluster_id": cluster_id})


def decode_cluster_id(node: Node) -> str:
    return _field(node, decode(node), "cluster_id", str)


def encode_broker(registration: BrokerRegistration) -> bytes:
    """Without the epoch, which is the commit that creates the node, and the fence, which is the controller's."""
    endpoints = [
        {
            "name": endpoint.name,
            "host": endpoint.host,
            "port": endpoint.port,
            "security_protocol": endpoint.security_protocol,
        }
        for endpoint in registration.endpoints
    ]
    offline = {
        uuid_to_text(topic_id): list(indexes) for topic_id, indexes in sorted(registration.offline_partitions.items())
    }
    return encode(
        {
            "incarnation_id": uuid_to_text(registration.incarnation_id),
            "rack": registration.rack,
            "endpoints": endpoints,
            "is_shutting_down": registration.is_shutting_down,
            **({"offline_partitions": offline} if offline else {}),
        }
    )


def decode_broker(node: Node) -> BrokerRegistration:
    document = decode(node)
    name = node.path.rpartition("/")[2]
    if not name.isdecimal():
        raise CorruptNode(node.path, "the name of a broker's node is its id")
    rack = document.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise CorruptNode(node.path, f"expected str or null as 'rack', found {rack!r}")
    endpoints = []
    for entry in _field(node, document, "endpoints", list):
        if not isinstance(entry, dict):
            raise CorruptNode(node.path, f"expected objects in 'endpoints', found {entry!r}")
        endpoints.append(
            Endpoint(
                name=_field(node, entry, "name", str),
                host=_field(node, entry, "host", str),
                port=_field(node, entry, "port", int),
                security_protocol=_field(node, entry, "security_protocol", str),
            )
        )
    return BrokerRegistration(
        node_id=int(name),
        endpoints=tuple(endpoints),
        rack=rack,
        epoch=node.created_id,
        incarnation_id=_uuid(node, document, "incarnation_id"),
        is_fenced=True,
        is_shutting_down=_field(node, document, "is_shutting_down", bool),
        offline_partitions=_offline_partitions(node, document),
    )


def _offline_partitions(node: Node, document: Mapping[str, Any]) -> dict[bytes, tuple[int, ...]]:
    """Most brokers have none, and say nothing."""
    if "offline_partitions" not in document:
        return {}
    found: dict[bytes, tuple[int, ...]] = {}
    for topic_id, indexes in _field(node, document, "offline_partitions", dict).items():
        if type(indexes) is not list or not {*map(type, indexes)} <= {int}:
            raise CorruptNode(node.path, f"expected lists of partitions in 'offline_partitions', found {indexes!r}")
        try:
            found[uuid_from_text(topic_id)] = tuple(indexes)
        except ValueError as error:
            raise CorruptNode(node.path, f"'offline_partitions': {error}") from error
    return found


def encode_directories(directory_ids: Iterable[bytes]) -> bytes:
    return encode({"directories": sorted(map(uuid_to_text, directory_ids))})


def decode_directories(node: Node) -> frozenset[bytes]:
    try:
        return frozenset(uuid_from_text(text) for text in _field(node, decode(node), "directories", list))
    except (ValueError, TypeError) as error:
        raise CorruptNode(node.path, f"'directories': {error}") from error


def encode_admitted(admitted: Mapping[int, int]) -> bytes:
    return encode({"epochs": {str(node_id): epoch for node_id, epoch in sorted(admitted.items())}})


def decode_admitted(node: Node) -> dict[int, int]:
    epochs = _field(node, decode(node), "epochs", dict)
    for node_id, epoch in epochs.items():
        if not node_id.isdecimal() or type(epoch) is not int:
            raise CorruptNode(node.path, f"expected broker ids and epochs, found {node_id!r}: {epoch!r}")
    return {int(node_id): epoch for node_id, epoch in epochs.items()}


def encode_controller(record: ControllerRecord) -> bytes:
    return encode({"broker_id": record.broker_id, "epoch": record.epoch, "session_id": record.session_id})


def decode_controller(node: Node) -> ControllerRecord:
    document = decode(node)
    return ControllerRecord(
        broker_id=_field(node, document, "broker_id", int),
        epoch=_field(node, document, "epoch", int),
        session_id=_field(node, document, "session_id", int),
    )


def encode_counter(name: str, value: int) -> bytes:
    return encode({name: value})


def decode_counter(node: Node, name: str) -> int:
    return _field(node, decode(node), name, int)


def encode_topic(topic_id: bytes, assignment: Sequence[Sequence[int]]) -> bytes:
    return encode({"topic_id": uuid_to_text(topic_id), "partitions": len(assignment), "assignment": assignment})


def decode_topic(node: Node) -> TopicRecord:
    document = decode(node)
    assignment = _field(node, document, "assignment", list)
    if len(assignment) != _field(node, document, "partitions", int) or not assignment:
        raise CorruptNode(node.path, "the count of partitions and the replica assignment differ")
    for replicas in assignment:
        if not _is_broker_list(replicas) or not replicas:
            raise CorruptNode(node.path, f"expected lists of broker ids in 'assignment', found {replicas!r}")
    topic_id = _uuid(node, document, "topic_id")
    return TopicRecord(topic_id, tuple(tuple(replicas) for replicas in assignment), node.version)


def encode_state(topic_id: bytes, controller_epoch: int, partitions: Sequence[PartitionImage]) -> bytes:
    states = [
        [partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr] for partition in partitions
    ]
    return encode({"topic_id": uuid_to_text(topic_id), "controller_epoch": controller_epoch, "partitions": states})


def decode_state(node: Node) -> StateRecord:
    document = decode(node)
    states = []
    for entry in _field(node, document, "partitions", list):
        if type(entry) is not list or len(entry) != 4 or not _is_broker_list(entry[3]):
            raise CorruptNode(node.path, _not_a_state(entry))
        leader, leader_epoch, partition_epoch, isr = entry
        if type(leader) is not int or type(leader_epoch) is not int or type(partition_epoch) is not int:
            raise CorruptNode(node.path, _not_a_state(entry))
        states.append(PartitionState(leader, leader_epoch, partition_epoch, tuple(isr)))
    return StateRecord(_uuid(node, document, "topic_id"), tuple(states), node.version)


def _not_a_state(entry: object) -> str:
    return f"expected [leader, leader epoch, partition epoch, [isr]], found {entry!r}"


def encode_configs(configs: Mapping[str, str]) -> bytes:
    return encode({"configs": dict(sorted(configs.items()))})


def decode_configs(node: Node) -> dict[str, str]:
    configs = _field(node, decode(node), "configs", dict)
    for name, value in configs.items():
        if not isinstance(value, str):
            raise CorruptNode(node.path, f"expected text as the value of {name!r}, found {value!r}")
    return configs


def encode_quotas(entity: QuotaEntity, limits: Limits) -> bytes:
    return encode({"entity": entity.names, "limits": dict(sorted(limits.items()))})


def decode_quotas(node: Node) -> tuple[QuotaEntity, dict[str, float]]:
    document = decode(node)
    names = _field(node, document, "entity", dict)
    for kind, name in names.items():
        if name is not None and type(name) is not str:
            raise CorruptNode(node.path, f"expected the name of a {kind}, or null, found {name!r}")
    limits = _field(node, document, "limits", dict)
    for key, value in limits.items():
        if type(value) is not float:
            raise CorruptNode(node.path, f"expected a number with a fraction as {key!r}, found {value!r}")
    return QuotaEntity.of(names), limits
