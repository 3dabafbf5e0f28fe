"""Quotas on a real store: written by the controller, in the image of every broker, there after a restart."""

import asyncio
from pathlib import Path

import pytest
from tests.unit.cluster.harness import running_cluster

from ottla.cluster import paths, registry
from ottla.cluster.image import ClusterImage
from ottla.cluster.image_builder import ImageBuilder
from ottla.cluster.quota_changes import alter_client_quotas
from ottla.cluster.quotas import ClientQuotas, QuotaEntity
from ottla.cluster.registry import CorruptNode
from ottla.cluster.requests import AlterQuotasRequest, AlterQuotasResult, QuotaChange
from ottla.coordination.store import Create, Delete, Node, Set
from ottla.protocol.errors import ErrorCode

APP = QuotaEntity.of({"client-id": "app"})
ANYBODY = QuotaEntity.of({"user": None})


def wanted(entity: QuotaEntity, **limits: float | None) -> AlterQuotasRequest:
    return AlterQuotasRequest(entity, tuple(QuotaChange(key, value) for key, value in limits.items()))


def test_an_entity_is_the_same_in_any_order() -> None:
    assert QuotaEntity.of({"user": "a", "client-id": None}) == QuotaEntity.of({"client-id": None, "user": "a"})


def test_no_two_entities_share_a_node() -> None:
    names = [None, "<default>", "a", "a,user=b", "a=b", "%", "%25", "/", ".", "ä"]
    entities = [QuotaEntity.of({kind: name}) for kind in ("user", "client-id", "ip") for name in names]
    entities += [QuotaEntity.of({"user": one, "client-id": other}) for one in names for other in names]
    nodes = {paths.quotas(entity.parts) for entity in entities}
    assert len(nodes) == len(entities)
    assert all(node.count("/") == 2 for node in nodes)


def test_only_what_changes_is_written() -> None:
    image = ClusterImage(quotas=ClientQuotas({APP: {"producer_byte_rate": 5.0}}, {APP: 3}))
    path = paths.quotas(APP.parts)

    def operations(request: AlterQuotasRequest) -> tuple[object, ...]:
        (decision,) = alter_client_quotas(image, [request])
        assert decision.result.error == ErrorCode.NONE
        return decision.operations

    assert operations(wanted(APP, producer_byte_rate=5.0)) == ()
    assert operations(wanted(APP, consumer_byte_rate=None)) == ()
    assert operations(wanted(APP, producer_byte_rate=None)) == (Delete(path, 3),)
    (changed,) = operations(wanted(APP, producer_byte_rate=6.0))
    assert isinstance(changed, Set)
    assert changed.version == 3
    (created,) = operations(wanted(ANYBODY, producer_byte_rate=6.0))
    assert isinstance(created, Create)


def test_a_host_that_nobody_knows_is_refused() -> None:
    entity = QuotaEntity.of({"ip": "nowhere"})
    request = AlterQuotasRequest(entity, (QuotaChange("connection_creation_rate", 1.0),), is_unknown_host=True)
    (decision,) = alter_client_quotas(ClusterImage(), [request])
    assert (decision.result.error, decision.operations) == (ErrorCode.INVALID_REQUEST, ())


@pytest.mark.parametrize(
    "document",
    [
        b"{}",
        b"nonsense",
        b'{"version":1,"entity":{"user":5},"limits":{}}',
        b'{"version":1,"entity":{"user":"a"},"limits":{"producer_byte_rate":"1"}}',
        b'{"version":1,"entity":[],"limits":{}}',
    ],
)
def test_a_corrupt_node_is_reported_and_what_was_known_stays(document: bytes) -> None:
    builder = ImageBuilder()
    path = paths.quotas(APP.parts)
    good = Node(path, registry.encode_quotas(APP, {"producer_byte_rate": 5.0}), 0, 1, 1, False)
    image = builder.apply([(path, good)])
    assert image.quotas.limits == {APP: {"producer_byte_rate": 5.0}}
    assert builder.apply([(path, Node(path, document, 1, 1, 2, False))]) is image
    assert isinstance(builder.problems[path], CorruptNode)


def test_quotas_reach_every_image_and_outlive_all_brokers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_cluster(tmp_path) as cluster:
            first, second = await cluster.start(1), await cluster.start(2)
            results = await first.controller.alter_client_quotas(
                [wanted(APP, producer_byte_rate=1.5e3), wanted(ANYBODY, request_percentage=12.5)]
            )
            assert results == [AlterQuotasResult(APP), AlterQuotasResult(ANYBODY)]
            expected = {APP: {"producer_byte_rate": 1500.0}, ANYBODY: {"request_percentage": 12.5}}
            assert first.metadata.image.quotas.limits == expected
            await second.metadata.wait_for(lambda image: image.quotas.limits == expected)
            (refused,) = await second.controller.alter_client_quotas([wanted(APP, producer_byte_rate=1.0)])
            assert refused.error == ErrorCode.NOT_CONTROLLER
            await first.controller.alter_client_quotas([wanted(ANYBODY, request_percentage=None)], validate_only=True)
            assert first.metadata.image.quotas.limits == expected
            await first.controller.alter_client_quotas([wanted(ANYBODY, request_percentage=None)])
            assert first.metadata.image.quotas.limits == {APP: {"producer_byte_rate": 1500.0}}
        async with running_cluster(tmp_path) as cluster:
            again = await cluster.start(1)
            assert again.metadata.image.quotas.limits == {APP: {"producer_byte_rate": 1500.0}}

    asyncio.run(scenario())
