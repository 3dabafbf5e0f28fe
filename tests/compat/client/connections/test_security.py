"""The client and a careful Apache Kafka: who is let in, who is not, and what either is told."""

import asyncio
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from tests.compat.client.connections.entering import PATIENCE_SECONDS, let_in, refused, sasl, unsigned_token
from tests.peers.certificates import Authority, Identity
from tests.peers.secured_kafka import PASSWORD, SESSION_MS, USER, SecuredKafka

from ottla.client.cluster import Cluster
from ottla.client.config import AdminConfig, resolve
from ottla.client.connections import Connections
from ottla.client.errors import BrokerUnavailable
from ottla.client.producer.producer import AsyncProducer
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

MODULES = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def client_identity(kafka: SecuredKafka) -> Identity:
    return kafka.authority.issue("client", password="key secret")


@pytest.fixture(scope="module")
def trust(kafka: SecuredKafka) -> dict[str, Any]:
    return {"ssl_truststore_type": "PEM", "ssl_truststore_location": str(kafka.authority.certificate)}


class TestSasl:
    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    def test_a_user_with_the_right_password_is_let_in(self, kafka: SecuredKafka, mechanism: str) -> None:
        let_in(kafka, "SASL_PLAINTEXT", **sasl(mechanism))

    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
    def test_the_same_over_tls(self, kafka: SecuredKafka, trust: dict[str, Any], mechanism: str) -> None:
        let_in(kafka, "SASL_SSL", **sasl(mechanism, "SASL_SSL"), **trust)

    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    @pytest.mark.parametrize("wrong", [{"sasl_password": "wrong"}, {"sasl_username": "nobody"}])
    def test_a_wrong_user_or_password_is_refused(
        self, kafka: SecuredKafka, mechanism: str, wrong: dict[str, str]
    ) -> None:
        text = refused(kafka, "SASL_PLAINTEXT", **sasl(mechanism, **wrong))
        assert re.search(r"refused user '\w+'.*check the credentials", text)

    def test_the_credentials_of_a_java_client_are_taken_as_they_are(self, kafka: SecuredKafka) -> None:
        config = f'{MODULES}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";'
        let_in(
            kafka,
            "SASL_PLAINTEXT",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_jaas_config=config,
        )

    def test_a_mechanism_that_the_broker_does_not_have_is_told_with_those_it_has(
        self, kafka: SecuredKafka, trust: dict[str, Any]
    ) -> None:
        text = refused(kafka, "SASL_SSL", **sasl("SCRAM-SHA-256", "SASL_SSL"), **trust)
        assert "set sasl.mechanism to one that it has (PLAIN, SCRAM-SHA-512)" in text

    def test_a_good_token_is_let_in(self, kafka: SecuredKafka) -> None:
        settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        let_in(kafka, "SASL_PLAINTEXT", sasl_oauthbearer_token_callback=unsigned_token, **settings)

    @pytest.mark.parametrize("lifetime_seconds", [None, -3600])
    def test_a_bad_token_is_refused(self, kafka: SecuredKafka, lifetime_seconds: int | None) -> None:
        token = "nonsense" if lifetime_seconds is None else unsigned_token(lifetime_seconds)
        settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
        text = refused(kafka, "SASL_PLAINTEXT", sasl_oauthbearer_token_callback=lambda: token, **settings)
        assert "refused the token" in text

    def test_a_session_is_renewed_before_the_broker_ends_it(self, kafka: SecuredKafka) -> None:
        async def work() -> None:
            settings = {"reconnect_backoff_ms": 1, **sasl("PLAIN")}
            network = Connections(resolve(AdminConfig, kafka.address("SASL_PLAINTEXT"), None, settings))
            network.start()
            cluster = await network.updated(Cluster(), PATIENCE_SECONDS)
            (node_id,) = cluster.nodes
            before = network._links[node_id].connection
            loop = asyncio.get_running_loop()
            end = loop.time() + SESSION_MS * 1.3 / 1000
            while loop.time() < end:
                await network.ask(node_id, ListGroupsRequest(), ListGroupsResponse)
                await asyncio.sleep(0.02)
            assert network._links[node_id].connection is before
            await network.close()

        asyncio.run(work())


def test_a_client_finds_its_way_back_when_the_broker_was_killed(kafka: SecuredKafka, trust: dict[str, Any]) -> None:
    async def work() -> None:
        settings = sasl("SCRAM-SHA-512", "SASL_SSL", **trust)
        network = Connections(resolve(AdminConfig, kafka.address("SASL_SSL"), None, settings))
        network.start()
        cluster = await network.updated(Cluster(), PATIENCE_SECONDS)
        (node_id,) = cluster.nodes
        await network.ask(node_id, ListGroupsRequest(), ListGroupsResponse)
        kafka.kill()
        with pytest.raises(BrokerUnavailable):
            await network.ask(node_id, ListGroupsRequest(), ListGroupsResponse)
        await asyncio.to_thread(kafka.start)
        async with asyncio.timeout(PATIENCE_SECONDS):
            for attempt in itertools.count():
                try:
                    await network.ask(node_id, ListGroupsRequest(), ListGroupsResponse)
                    break
                except BrokerUnavailable:
                    await network.backoff(attempt)
        await network.close()

    asyncio.run(work())


def test_records_travel_over_tls_in_large_requests(kafka: SecuredKafka, trust: dict[str, Any], topic: str) -> None:
    async def work() -> list[int]:
        settings = sasl("SCRAM-SHA-512", "SASL_SSL", batch_size=1_000_000, max_request_size=5_000_000, **trust)
        async with AsyncProducer(kafka.address("SASL_SSL"), **settings) as producer:
            deliveries = [producer.send(topic, bytes([number]) * 100_000, partition=0) for number in range(100)]
            return [(await delivery).offset for delivery in deliveries]

    assert asyncio.run(work()) == list(range(100))


class TestTls:
    def test_a_client_with_a_certificate_is_let_in(
        self, kafka: SecuredKafka, trust: dict[str, Any], client_identity: Identity
    ) -> None:
        identity = {"ssl_keystore_location": str(client_identity.both), "ssl_key_password": "key secret"}
        for version in ("TLSv1.2", "TLSv1.3"):
            let_in(kafka, "SSL", security_protocol="SSL", ssl_enabled_protocols=version, **trust, **identity)

    @pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
    def test_one_without_is_not(self, kafka: SecuredKafka, trust: dict[str, Any], version: str) -> None:
        text = refused(kafka, "SSL", security_protocol="SSL", ssl_enabled_protocols=version, **trust)
        assert "set ssl.keystore.location" in text

    @pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
    def test_nor_one_that_the_broker_does_not_trust(
        self, kafka: SecuredKafka, trust: dict[str, Any], tmp_path: Path, version: str
    ) -> None:
        stranger = Authority(tmp_path, "Somebody else").issue("stranger")
        text = refused(
            kafka,
            "SSL",
            security_protocol="SSL",
            ssl_enabled_protocols=version,
            ssl_keystore_location=str(stranger.both),
            **trust,
        )
        assert "refused the client's certificate" in text

    def test_a_broker_of_an_unknown_authority_is_not_trusted(self, kafka: SecuredKafka, tmp_path: Path) -> None:
        other = Authority(tmp_path, "Somebody else")
        text = refused(kafka, "SASL_SSL", **sasl("PLAIN", "SASL_SSL"), ssl_ca_location=str(other.certificate))
        assert "nobody who signed it is trusted" in text

    def test_a_certificate_for_another_host_is_refused(self, kafka: SecuredKafka, trust: dict[str, Any]) -> None:
        assert "it is not for 127.0.0.1" in refused(kafka, "ELSEWHERE", security_protocol="SSL", **trust)
        let_in(kafka, "ELSEWHERE", security_protocol="SSL", ssl_endpoint_identification_algorithm="", **trust)

    def test_an_expired_certificate_is_refused(self, kafka: SecuredKafka, trust: dict[str, Any]) -> None:
        assert "expired" in refused(kafka, "EXPIRED", security_protocol="SSL", **trust)


class TestTheWrongPort:
    def unreachable(self, kafka: SecuredKafka, listener: str, **settings: Any) -> str:
        quick = {"reconnect_backoff_ms": 1, "retry_backoff_ms": 1, **settings}

        async def work() -> str:
            network = Connections(resolve(AdminConfig, kafka.address(listener), None, quick))
            network.start()
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while True:
                        try:
                            await network.updated(Cluster(), 0.1)
                        except BrokerUnavailable as error:
                            if error.__cause__ is not None:
                                return str(error)
            finally:
                await network.close()

        return asyncio.run(work())

    def test_a_plain_client_at_a_port_with_tls(self, kafka: SecuredKafka) -> None:
        assert "security.protocol" in self.unreachable(kafka, "SSL")

    def test_a_plain_client_at_a_port_with_sasl(self, kafka: SecuredKafka) -> None:
        assert "security.protocol" in self.unreachable(kafka, "SASL_PLAINTEXT")

    def test_a_client_with_tls_at_a_plain_port(self, kafka: SecuredKafka, trust: dict[str, Any]) -> None:
        assert "is that port one with TLS" in self.unreachable(kafka, "PLAINTEXT", security_protocol="SSL", **trust)

    def test_a_client_with_sasl_at_a_plain_port(self, kafka: SecuredKafka) -> None:
        assert "does not want SASL on that port" in refused(kafka, "PLAINTEXT", **sasl("PLAIN"))
