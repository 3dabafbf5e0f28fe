"""Apache Kafka with a listener for each way of being careful.

| listener         | security                                                                              |
|------------------|---------------------------------------------------------------------------------------|
| `PLAINTEXT`      | none                                                                                  |
| `SASL_PLAINTEXT` | PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER (tokens without a signature)          |
| `SASL_SSL`       | TLS, and PLAIN or SCRAM-SHA-512                                                       |
| `SSL`            | TLS; clients have to show a certificate                                               |
| `ELSEWHERE`      | TLS with a certificate that is for another host                                       |
| `EXPIRED`        | TLS with a certificate that has expired                                               |

There is one user, `alice`. A session of PLAIN without TLS is over after `SESSION_MS`, unless it is renewed.
"""

from __future__ import annotations

from pathlib import Path

from tests.peers.certificates import Authority, Identity
from tests.peers.kafka import KafkaBroker
from tests.peers.ports import LOOPBACK, free_port

USER = "alice"
PASSWORD = "alice s3cret"
SESSION_MS = 2000

_PROTOCOLS = {
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "SSL": "SSL",
    "ELSEWHERE": "SSL",
    "EXPIRED": "SSL",
}
_MODULES = "org.apache.kafka.common.security"


class SecuredKafka(KafkaBroker):
    """`addresses` has the host and port of each listener, `authority` signed what its certificates say."""

    def __init__(self, directory: Path, authority: Authority) -> None:
        self.authority = authority
        self._ports = {name: free_port() for name in _PROTOCOLS}
        self._plain_port = free_port()
        self._controller = free_port()
        super().__init__(directory, self._plain_port, properties=self._secure(), short_lived=True, heap="512m")

    def address(self, listener: str) -> str:
        return f"{LOOPBACK}:{self._plain_port if listener == 'PLAINTEXT' else self._ports[listener]}"

    def prepare(self) -> None:
        self._controller_port = self._controller
        super().prepare()

    def _secure(self) -> dict[str, str]:
        listeners = [f"{name}://{self.address(name)}" for name in ("PLAINTEXT", *_PROTOCOLS)]
        protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", **_PROTOCOLS}
        return {
            "listeners": ",".join([*listeners, f"CONTROLLER://{LOOPBACK}:{self._controller}"]),
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "connection.failed.authentication.delay.ms": "0",
            **self._tls(),
            **self._sasl(),
        }

    def _tls(self) -> dict[str, str]:
        settings = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority.certificate)}
        settings |= _key_store("", self.authority.issue("broker"))
        settings |= _key_store("listener.name.elsewhere.", self.authority.issue("elsewhere", "DNS:elsewhere.example"))
        settings |= _key_store("listener.name.expired.", self.authority.issue("expired", days=-1))
        settings["listener.name.ssl.ssl.client.auth"] = "required"
        return settings

    def _sasl(self) -> dict[str, str]:
        settings = {
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": str(SESSION_MS),
        }
        for listener in ("sasl_plaintext", "sasl_ssl"):
            prefix = f"listener.name.{listener}"
            plain = f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            settings[f"{prefix}.plain.sasl.jaas.config"] = plain
            for kind in ("scram-sha-256", "scram-sha-512"):
                settings[f"{prefix}.{kind}.sasl.jaas.config"] = f"{_MODULES}.scram.ScramLoginModule required;"
            bearer = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
            settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = bearer
        return settings

    def _format_arguments(self) -> list[str]:
        users = [f'{kind}=[name={USER},password="{PASSWORD}"]' for kind in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
        return [argument for user in users for argument in ("--add-scram", user)]


def _key_store(prefix: str, identity: Identity) -> dict[str, str]:
    return {f"{prefix}ssl.keystore.type": "PEM", f"{prefix}ssl.keystore.location": str(identity.both)}
