"""Clients that want to be let in by a secured Apache Kafka, and whether they are."""

import asyncio
import base64
import json
import time
from typing import Any

import pytest
from tests.peers.secured_kafka import PASSWORD, USER, SecuredKafka

from ottla.client.cluster import Cluster
from ottla.client.config import AdminConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import AuthenticationFailed
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

PATIENCE_SECONDS = 60.0


async def learn(kafka: SecuredKafka, listener: str, settings: dict[str, Any]) -> Cluster:
    network = Connections(resolve(AdminConfig, kafka.address(listener), None, settings))
    network.start()
    try:
        cluster = await network.updated(Cluster(), PATIENCE_SECONDS)
        await network.ask(next(iter(cluster.nodes)), ListGroupsRequest(), ListGroupsResponse)
        return cluster
    finally:
        await network.close()


def let_in(kafka: SecuredKafka, listener: str, **settings: Any) -> None:
    cluster = asyncio.run(learn(kafka, listener, settings))
    (node,) = cluster.nodes.values()
    assert f"{node.host}:{node.port}" == kafka.address(listener)


def refused(kafka: SecuredKafka, listener: str, **settings: Any) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        asyncio.run(learn(kafka, listener, settings))
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


def sasl(mechanism: str, protocol: str = "SASL_PLAINTEXT", **settings: Any) -> dict[str, Any]:
    credentials = {"sasl_username": USER, "sasl_password": PASSWORD}
    return {"security_protocol": protocol, "sasl_mechanism": mechanism, **credentials, **settings}


def unsigned_token(lifetime_seconds: int = 3600) -> str:
    now = int(time.time())
    claims = {"sub": USER, "iat": now - 10, "exp": now + lifetime_seconds}
    pieces = [base64.urlsafe_b64encode(json.dumps(piece).encode()).decode() for piece in ({"alg": "none"}, claims)]
    return ".".join([*(piece.rstrip("=") for piece in pieces), ""])
