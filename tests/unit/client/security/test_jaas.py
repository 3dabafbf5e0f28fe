"""`sasl.jaas.config`: what Java clients take is taken, and no secret is in a refusal."""

import pytest

from ottla.client.errors import ConfigError
from ottla.client.security.jaas import options_of

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.mark.parametrize(
    ("text", "mechanism", "options"),
    [
        (f'{PLAIN} required username="alice" password="s3cret";', "PLAIN", {"username": "alice", "password": "s3cret"}),
        (f"{SCRAM} required username=bob password=x;", "SCRAM-SHA-512", {"username": "bob", "password": "x"}),
        (f'{PLAIN} required\n  password="p;q\\"r\\\\s" ;\n', "PLAIN", {"password": 'p;q"r\\s'}),
        (f'{OAUTH} required extension_logicalCluster="lkc-1";', "OAUTHBEARER", {"extension_logicalCluster": "lkc-1"}),
        (f"{OAUTH} required ;", "OAUTHBEARER", {}),
    ],
)
def test_options_are_read(text: str, mechanism: str, options: dict[str, str]) -> None:
    assert options_of(text, mechanism) == options


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'{PLAIN} required username="alice" password="s3cret"', "semicolon"),
        (f'{PLAIN} required username="alice" password="s3cret;', "semicolon"),
        (f'{PLAIN} username="alice" password="s3cret";', "begins with"),
        ('com.example.Login required password="s3cret";', "com.example.Login"),
        (f'{SCRAM} required password="s3cret";', "sasl.mechanism is PLAIN"),
        ("", "begins with"),
    ],
)
def test_what_cannot_be_read_is_refused_without_the_secret(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        options_of(text, "PLAIN")
    assert "s3cret" not in str(refused.value)
