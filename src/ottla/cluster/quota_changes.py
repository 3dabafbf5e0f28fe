"""Decisions about client quotas. Pure functions of an image and requests."""

from collections.abc import Sequence
from dataclasses import replace

from ottla.cluster import paths, registry
from ottla.cluster.image import NO_NODE_VERSION, ClusterImage
from ottla.cluster.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    Limits,
    QuotaEntity,
)
from ottla.cluster.requests import AlterQuotasRequest, AlterQuotasResult, Decision, QuotaChange
from ottla.coordination.store import MAX_NODE_BYTES, Create, Delete, Operation, Set
from ottla.protocol.errors import ErrorCode, KafkaError

# The largest value of each key that takes whole numbers; None where fractions are fine.
CLIENT_KEYS: dict[str, float | None] = {
    PRODUCER_BYTE_RATE: float(2**63 - 1),
    CONSUMER_BYTE_RATE: float(2**63 - 1),
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
ADDRESS_KEYS: dict[str, float | None] = {CONNECTION_CREATION_RATE: float(2**31 - 1)}
LARGEST_FRACTION = 1e-6


def alter_client_quotas(
    image: ClusterImage, requests: Sequence[AlterQuotasRequest]
) -> list[Decision[AlterQuotasResult]]:
    """One decision for each distinct entity.

    An entity that comes again is refused, but what came first stands: this is one error that writes something, as in
    Kafka.
    """
    decisions: dict[QuotaEntity, Decision[AlterQuotasResult]] = {}
    for request in requests:
        entity = request.entity
        known = decisions.get(entity)
        if known is None:
            decisions[entity] = _alter(image, request)
        else:
            message = "The entity comes more than once in the request."
            repeated = AlterQuotasResult(entity, ErrorCode.INVALID_REQUEST, message)
            decisions[entity] = replace(known, result=repeated)
    return list(decisions.values())


def _alter(image: ClusterImage, request: AlterQuotasRequest) -> Decision[AlterQuotasResult]:
    entity = request.entity
    try:
        keys = _keys(request)
        before = image.quotas.limits.get(entity, {})
        after = _altered(before, request.changes, keys)
        version = image.quotas.versions.get(entity, NO_NODE_VERSION)
        return Decision(AlterQuotasResult(entity), _write(entity, before, after, version))
    except KafkaError as error:
        return Decision(AlterQuotasResult(entity, error.code, error.message))


def _keys(request: AlterQuotasRequest) -> dict[str, float | None]:
    """The keys that the entity may have."""
    names = request.entity.names
    if not names:
        raise _invalid("A quota needs a user, a client id or an address.")
    for kind, name in names.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"There are no quotas for {kind!r}, only for {USER}, {CLIENT_ID} and {IP}.")
        if name == "":
            raise _invalid(f"The name of a {kind} cannot be empty; the default has none at all.")
    if IP not in names:
        return CLIENT_KEYS
    if len(names) > 1:
        raise _invalid("A quota is for an address, or for a user and a client id, and not for both.")
    if request.is_unknown_host:
        raise _invalid(f"{names[IP]!r} is no address, and no host of that name is known.")
    return ADDRESS_KEYS


def _altered(before: Limits, changes: Sequence[QuotaChange], keys: dict[str, float | None]) -> dict[str, float]:
    after = dict(before)
    if len({change.key for change in changes}) < len(changes):
        raise _invalid("Each quota may be changed once in a request.")
    for change in changes:
        if change.value is None:
            after.pop(change.key, None)
        else:
            _check_value(change.key, change.value, keys)
            after[change.key] = change.value
    return after


def _check_value(key: str, value: float, keys: dict[str, float | None]) -> None:
    """What is no number at all passes, as in Kafka, and limits nobody."""
    if key not in keys:
        raise _invalid(f"The entity cannot have the quota {key!r}, only {', '.join(keys)}.")
    if value <= 0:
        raise _invalid(f"{key} must be above 0, not {value}.")
    largest = keys[key]
    if largest is not None and value > largest:
        raise _invalid(f"{key} can be {largest:.0f} at most, not {value}.")
    if largest is not None and value % 1.0 > LARGEST_FRACTION:
        raise _invalid(f"{key} must be a whole number, not {value}.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _write(entity: QuotaEntity, before: Limits, after: Limits, node_version: int) -> tuple[Operation, ...]:
    if registry.encode_quotas(entity, before) == (data := registry.encode_quotas(entity, after)):
        return ()
    path = paths.quotas(entity.parts)
    if not after:
        return (Delete(path, node_version),)
    if len(data) > MAX_NODE_BYTES:
        raise _invalid(f"The quota takes {len(data)} bytes, {MAX_NODE_BYTES} is the limit.")
    if node_version == NO_NODE_VERSION:
        return (Create(path, data),)
    return (Set(path, data, node_version),)
