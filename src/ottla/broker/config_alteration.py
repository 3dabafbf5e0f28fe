"""What AlterConfigs and IncrementalAlterConfigs have in common: resources are checked, then the controller is asked.

Each resource is answered for itself and changes whole or not at all. The answer leaves when this broker goes by the
new settings.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.cluster.config_changes import check_changes
from ottla.cluster.requests import AlterConfigsRequest, AlterConfigsResult, ConfigChange, ConfigOperation
from ottla.groups.configs import UNUSED_CONFIGS
from ottla.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

logger = logging.getLogger(__name__)

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
MAX_CHANGES = 10_000
# Checking the settings of one takes about 0.1 ms, and others want to be served meanwhile.
RESOURCES_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Alteration:
    """Changes of one resource, as a client asks for them; `problem` is set when they cannot even be read."""

    resource_type: int
    resource_name: str
    changes: tuple[ConfigChange, ...]
    replaces_all: bool = False
    problem: KafkaError | None = None


async def alter(broker: "Broker", wanted: Sequence[Alteration], *, validate_only: bool) -> list[AlterConfigsResult]:
    """One result for each resource, in order."""
    times_named = Counter((item.resource_type, item.resource_name) for item in wanted)
    has_too_many = sum(len(item.changes) for item in wanted) > MAX_CHANGES
    results: dict[int, AlterConfigsResult] = {}
    for position, item in enumerate(wanted):
        try:
            if times_named[item.resource_type, item.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "A resource may be named once in a request.")
            _check(broker, item)
            if has_too_many:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, f"One request may change {MAX_CHANGES} settings at most.")
        except KafkaError as error:
            results[position] = AlterConfigsResult(item.resource_name, error.code, error.message)
    for resource_type, ask in (
        (TOPIC, broker.controller.alter_topic_configs),
        (BROKER, broker.controller.alter_broker_configs),
        (GROUP, broker.controller.alter_group_configs),
        (CLIENT_METRICS, broker.controller.alter_client_metrics),
    ):
        positions = [
            position
            for position, item in enumerate(wanted)
            if item.resource_type == resource_type and position not in results
        ]
        for first in range(0, len(positions), RESOURCES_AT_ONCE):
            few = positions[first : first + RESOURCES_AT_ONCE]
            requests = [_request(wanted[position]) for position in few]
            results.update(zip(few, await ask(requests, validate_only), strict=True))
            await asyncio.sleep(0)
    if not validate_only:
        await broker.image_applied()
        for position, item in enumerate(wanted):
            if not results[position].error:
                _report_unused(item)
    return [results[position] for position in range(len(wanted))]


def _check(broker: "Broker", item: Alteration) -> None:
    check_changes(item.changes)
    if item.problem is not None:
        raise item.problem
    if item.resource_type not in (TOPIC, BROKER, GROUP, CLIENT_METRICS):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Resource type {item.resource_type} has no settings here.")
    if item.resource_type == BROKER and item.resource_name:
        check_is_this_broker(broker, item.resource_name)


def _report_unused(item: Alteration) -> None:
    """Say what nothing comes of; for brokers, `DynamicConfig` does."""
    names = [change.name for change in item.changes if change.operation is not ConfigOperation.DELETE]
    if item.resource_type == CLIENT_METRICS and names:
        logger.warning("the subscription to client metrics %s is kept, and has no effect here", item.resource_name)
    if item.resource_type == GROUP:
        for name in UNUSED_CONFIGS.intersection(names):
            logger.warning("the setting %s of group %s is kept, and has no effect here", name, item.resource_name)


def check_is_this_broker(broker: "Broker", name: str) -> None:
    """A broker's settings are the business of that broker, which knows its static ones."""
    try:
        node_id = int(name)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The name of a broker is its id, not {name!r}.") from None
    if node_id != broker.config.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"This broker is {broker.config.node_id}; ask {node_id} itself.")


def _request(item: Alteration) -> AlterConfigsRequest:
    name = item.resource_name
    if item.resource_type == BROKER and name:
        name = str(int(name))
    return AlterConfigsRequest(name, item.changes, item.replaces_all)
