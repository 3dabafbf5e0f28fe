"""TLS with a broker of the test: whom the client trusts, whom it refuses, and what it says then."""

import asyncio
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.peers.certificates import Authority, Identity, in_pkcs12
from tests.unit.client.rogue import NODE_ID, Asked, connected, connections, rogue, why_nothing_is_known

from ottla.client.cluster import Cluster
from ottla.client.config import ProducerConfig, resolve
from ottla.client.errors import AuthenticationFailed, ConfigError
from ottla.client.security.tls import tls_context
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker_identity(authority: Authority) -> Identity:
    return authority.issue("broker")


@pytest.fixture(scope="module")
def client_identity(authority: Authority) -> Identity:
    return authority.issue("client")


def server_context(identity: Identity, trusted: Authority | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    if trusted is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(trusted.certificate)
    return context


@contextmanager
def refusing(context: ssl.SSLContext) -> Iterator[int]:
    """A server that fails in the handshake and says why, as Kafka does; asyncio's would hang up without a word."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(ssl.SSLError), context.wrap_socket(connection, server_side=True) as tls:
                    tls.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


async def answers(asked: Asked) -> None:
    asked.answer(ListGroupsResponse(groups=[ListedGroup(group_id="billing")]))


def group_ids(server: ssl.SSLContext, host: str = "127.0.0.1", **settings: Any) -> list[str]:
    """Ask a broker with that side of TLS for its groups, as a client with those settings."""

    async def work() -> list[str]:
        async with rogue(answers, server) as broker:
            address = f"{host}:{broker.port}"
            async with connected(address, security_protocol="SSL", **settings) as network:
                answer = await network.ask_any(ListGroupsRequest(), ListGroupsResponse)
                return [group.group_id for group in answer.groups]

    return asyncio.run(work())


def test_a_broker_that_the_authority_vouches_for_is_trusted(authority: Authority, broker_identity: Identity) -> None:
    server = server_context(broker_identity)
    path, text = str(authority.certificate), authority.certificate.read_text()
    for settings in (
        {"ssl_ca_location": path},
        {"ssl_truststore_location": path, "ssl_truststore_type": "PEM"},
        {"ssl_truststore_certificates": text},
        {"ssl_truststore_certificates": " ".join(text.split("\n"))},
    ):
        assert group_ids(server, **settings) == ["billing"]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_both_versions_are_spoken(version: str, authority: Authority, broker_identity: Identity) -> None:
    server = server_context(broker_identity)
    settings = {"ssl_enabled_protocols": version, "ssl_ca_location": str(authority.certificate)}
    assert group_ids(server, **settings) == ["billing"]


def test_a_client_that_proves_itself_is_let_in(
    authority: Authority, broker_identity: Identity, client_identity: Identity
) -> None:
    server = server_context(broker_identity, authority)
    encrypted = authority.issue("careful", password="s3cret")
    trust = {"ssl_ca_location": str(authority.certificate)}
    for settings in (
        {"ssl_keystore_location": str(client_identity.both)},
        {"ssl_certificate_location": str(client_identity.certificate), "ssl_key_location": str(client_identity.key)},
        {
            "ssl_keystore_key": client_identity.key.read_text(),
            "ssl_keystore_certificate_chain": client_identity.certificate.read_text(),
        },
        {"ssl_keystore_location": str(encrypted.both), "ssl_key_password": "s3cret"},
    ):
        assert group_ids(server, **trust, **settings) == ["billing"]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_client_without_a_certificate_is_told_to_set_one(
    version: str, authority: Authority, broker_identity: Identity
) -> None:
    settings: dict[str, Any] = {"ssl_ca_location": str(authority.certificate), "ssl_enabled_protocols": version}

    async def work(port: int) -> None:
        async with connections(f"127.0.0.1:{port}", security_protocol="SSL", **settings) as network:
            with pytest.raises(
                AuthenticationFailed, match=r"refused the client's certificate.*ssl\.keystore\.location"
            ):
                await network.updated(Cluster(), 10.0)

    with refusing(server_context(broker_identity, authority)) as port:
        asyncio.run(work(port))


def test_an_authority_that_nobody_trusts_is_refused(
    authority: Authority, broker_identity: Identity, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "Somebody else")
    server = server_context(broker_identity)
    for settings in ({"ssl_ca_location": str(other.certificate)}, {}):
        with pytest.raises(AuthenticationFailed, match=r"nobody who signed it is trusted.*ssl\.truststore\.location"):
            group_ids(server, **settings)


def test_an_expired_certificate_is_refused(authority: Authority) -> None:
    server = server_context(authority.issue("old", days=-1))
    with pytest.raises(AuthenticationFailed, match="expired"):
        group_ids(server, ssl_ca_location=str(authority.certificate))


def test_a_certificate_for_another_host_is_refused_unless_the_check_is_off(authority: Authority) -> None:
    server = server_context(authority.issue("elsewhere", "DNS:elsewhere.example"))
    trust = {"ssl_ca_location": str(authority.certificate)}
    with pytest.raises(AuthenticationFailed, match=r"not for 127\.0\.0\.1.*ssl\.endpoint\.identification\.algorithm"):
        group_ids(server, **trust)
    assert group_ids(server, ssl_endpoint_identification_algorithm="", **trust) == ["billing"]


def test_a_port_without_tls_is_recognised(authority: Authority) -> None:
    async def work() -> None:
        async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        server = await asyncio.start_server(hello, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        settings: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": str(authority.certificate)}
        async with server, connections(f"127.0.0.1:{port}", **settings) as network:
            with pytest.raises(AuthenticationFailed, match="does not speak TLS"):
                await network.updated(Cluster(), 10.0)

    asyncio.run(work())


def test_large_answers_arrive_whole_also_when_the_socket_holds_more_than_the_selector_sees(
    authority: Authority, broker_identity: Identity
) -> None:
    sizes = (3_000_000, 70_000, 10, 20_000_000)

    async def work() -> None:
        count = 0

        async def behave(asked: Asked) -> None:
            nonlocal count
            records = bytes([count + 1]) * sizes[count]
            count += 1
            partition = PartitionData(partition_index=0, records=memoryview(records), high_watermark=1)
            asked.answer(FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])]))
            await asked.writer.drain()

        settings: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": str(authority.certificate)}
        async with (
            rogue(behave, server_context(broker_identity)) as broker,
            connected(broker.address, **settings) as network,
        ):
            asks = [network.ask(NODE_ID, FetchRequest(), FetchResponse) for _ in sizes]
            received = [answer.responses[0].partitions[0].records for answer in await asyncio.gather(*asks)]
        assert [bytes(records or b"") for records in received] == [
            bytes([number + 1]) * size for number, size in enumerate(sizes)
        ]

    asyncio.run(work())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"ssl_ca_location": "/no/such/file"}, r"ssl\.ca\.location.*No such file"),
        ({"ssl_truststore_location": "/no/such/file"}, r"ssl\.truststore\.location.*No such file"),
        ({"ssl_truststore_certificates": "nothing"}, r"ssl\.truststore\.certificates"),
        ({"ssl_keystore_key": "x"}, "go together"),
        ({"ssl_key_location": "x"}, r"ssl\.certificate\.location"),
        ({"ssl_enabled_protocols": "TLSv1"}, r"TLSv1\.2 and TLSv1\.3"),
        ({"ssl_cipher_suites": "NONSENSE"}, r"ssl\.cipher\.suites"),
        ({"ssl_enabled_protocols": "TLSv1.3", "ssl_protocol": "TLSv1.2"}, r"ssl\.protocol"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        tls_context(resolve(ProducerConfig, "localhost:9092", None, settings))


def test_stores_of_java_are_refused_with_the_way_to_convert_them(tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed" + bytes(100))
    with pytest.raises(ConfigError, match=r"keytool -importkeystore"):
        tls_context(resolve(ProducerConfig, "localhost:9092", None, {"ssl_truststore_location": str(store)}))


def test_pkcs12_needs_a_package_and_says_so(client_identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    store = {"ssl_keystore_location": str(in_pkcs12(client_identity, "s3cret")), "ssl_keystore_password": "s3cret"}
    with pytest.raises(ConfigError, match=r"ottla\[pkcs12\].*openssl pkcs12"):
        tls_context(resolve(ProducerConfig, "localhost:9092", None, store))


def test_pkcs12_is_read_where_the_package_is_there(
    authority: Authority, broker_identity: Identity, client_identity: Identity
) -> None:
    pytest.importorskip("cryptography", reason="PKCS12 needs the package cryptography")
    server = server_context(broker_identity, authority)
    settings = {
        "ssl_ca_location": str(authority.certificate),
        "ssl_keystore_type": "PKCS12",
        "ssl_keystore_location": str(in_pkcs12(client_identity, "s3cret")),
    }
    assert group_ids(server, **settings, ssl_keystore_password="s3cret") == ["billing"]
    with pytest.raises(ConfigError, match="its password is not the one"):
        group_ids(server, **settings, ssl_keystore_password="wrong")


def test_keys_that_cannot_be_used_are_refused(authority: Authority, client_identity: Identity, tmp_path: Path) -> None:
    encrypted = authority.issue("careful", password="s3cret")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"garbage")
    for settings, reason in (
        ({"ssl_keystore_location": str(client_identity.key)}, "no certificate"),
        ({"ssl_keystore_location": str(client_identity.certificate)}, "no private key"),
        ({"ssl_keystore_location": str(encrypted.both)}, r"encrypted: set ssl\.key\.password"),
        ({"ssl_keystore_location": str(encrypted.both), "ssl_key_password": "wrong"}, "not right"),
        ({"ssl_keystore_location": str(garbage)}, "neither PEM nor PKCS12"),
    ):
        with pytest.raises(ConfigError, match=reason):
            tls_context(resolve(ProducerConfig, "localhost:9092", None, settings))


def test_secrets_never_show(client_identity: Identity) -> None:
    secret = client_identity.key.read_text()
    config = resolve(ProducerConfig, "localhost:9092", None, {"ssl_keystore_key": secret, "sasl_password": "s3cret"})
    assert "s3cret" not in repr(config)
    assert "PRIVATE" not in repr(config)


def test_a_broker_that_closes_in_the_handshake_is_unavailable(authority: Authority) -> None:
    async def work() -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        settings: dict[str, Any] = {"security_protocol": "SSL", "ssl_ca_location": str(authority.certificate)}
        async with server, connections(f"127.0.0.1:{port}", **settings) as network:
            assert "is that port one with TLS" in await why_nothing_is_known(network)

    asyncio.run(work())
