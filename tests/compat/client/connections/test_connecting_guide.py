"""The examples of `docs/CONNECTING.md`, on a secured Apache Kafka."""

import contextlib
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.compat.client.connections.entering import let_in, unsigned_token
from tests.peers.paths import REPOSITORY
from tests.peers.secured_kafka import SecuredKafka

from ottla.client.config import ProducerConfig, resolve
from ottla.client.config_security import MECHANISMS

TEXT = (REPOSITORY / "docs" / "CONNECTING.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


def settings_of(example: str) -> dict[str, Any]:
    names: dict[str, Any] = {"fetch_token_from_somewhere": unsigned_token}
    exec(example, names)
    found: dict[str, Any] = names.get("settings", {"bootstrap.servers": names.get("servers")})
    return found


@pytest.fixture(scope="module")
def files(kafka: SecuredKafka, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("guide")
    identity = kafka.authority.issue("client", password="key secret")
    for source, name in (
        (kafka.authority.certificate, "authority.pem"),
        (identity.certificate, "client.pem"),
        (identity.key, "client.key"),
        (identity.both, "client-key-and-certificate.pem"),
    ):
        shutil.copy(source, directory / name)
    return directory


def test_the_examples_let_a_client_in(kafka: SecuredKafka, files: Path) -> None:
    seen = []
    with contextlib.chdir(files):
        for example in EXAMPLES:
            given = {name.replace(".", "_"): value for name, value in settings_of(example).items()}
            if "security_protocol" not in given or "sasl_oauthbearer_token_endpoint_url" in given:
                resolve(ProducerConfig, given.pop("bootstrap_servers", "localhost:9092"), None, given)
                continue
            protocol = given["security_protocol"]
            # The listener for TLS alone wants a certificate of the client: the other one does not.
            wants_no_certificate = protocol == "SSL" and not {"ssl_keystore_location", "ssl_key_location"} & set(given)
            if wants_no_certificate:
                let_in(kafka, "ELSEWHERE", **given, ssl_endpoint_identification_algorithm="")
            else:
                let_in(kafka, protocol, **given)
            seen.append((protocol, given.get("sasl_mechanism")))
    assert {mechanism for _, mechanism in seen if mechanism} == {"SCRAM-SHA-512", "PLAIN", "OAUTHBEARER"} & set(
        MECHANISMS
    )
    assert len(seen) == 6


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (REPOSITORY / "docs" / link).exists()
