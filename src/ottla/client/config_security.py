"""The settings of TLS and SASL, under Kafka's names.

Beside Kafka's there are those that Python people know from librdkafka (`ssl.ca.location`, `sasl.username` ...), and one
for the callback that hands out OAUTHBEARER tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.client.config_settings import Kind, between, one_of, setting

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_BOOLEAN, _INT, _LONG, _DOUBLE = Kind.BOOLEAN, Kind.INT, Kind.LONG, Kind.DOUBLE
_STRING, _PASSWORD, _LIST, _OBJECT = Kind.STRING, Kind.PASSWORD, Kind.LIST, Kind.OBJECT
_STORES = one_of("PEM", "PKCS12", "JKS")


@dataclass(frozen=True, kw_only=True)
class SecurityConfig:
    """How a client proves who it is, and checks who the broker is. Secrets never show in its text."""

    security_protocol: str = setting(
        "security.protocol",
        _STRING,
        "PLAINTEXT",
        "How to speak to brokers: with or without TLS (SSL), with or without SASL.",
        one_of(*SECURITY_PROTOCOLS),
    )

    # TLS

    ssl_enabled_protocols: tuple[str, ...] = setting(
        "ssl.enabled.protocols", _LIST, ("TLSv1.2", "TLSv1.3"), "The versions of TLS that may be spoken."
    )
    ssl_protocol: str = setting(
        "ssl.protocol",
        _STRING,
        "TLSv1.3",
        "The newest version of TLS that may be spoken.",
        one_of("TLS", "TLSv1.2", "TLSv1.3"),
    )
    ssl_cipher_suites: tuple[str, ...] | None = setting(
        "ssl.cipher.suites",
        _LIST,
        None,
        "The cipher suites that may be used, by OpenSSL's names; all good ones if unset.",
    )
    ssl_truststore_type: str = setting(
        "ssl.truststore.type", _STRING, "JKS", "The format of ssl.truststore.location: PEM or PKCS12.", _STORES
    )
    ssl_truststore_location: str | None = setting(
        "ssl.truststore.location", _STRING, None, "A file with the certificates of the authorities that are trusted."
    )
    ssl_truststore_password: str | None = setting(
        "ssl.truststore.password", _PASSWORD, None, "The password of ssl.truststore.location."
    )
    ssl_truststore_certificates: str | None = setting(
        "ssl.truststore.certificates", _PASSWORD, None, "Those certificates themselves, in PEM."
    )
    ssl_ca_location: str | None = setting(
        "ssl.ca.location", _STRING, None, "A PEM file, or a directory of them, with the authorities that are trusted."
    )
    ssl_keystore_type: str = setting(
        "ssl.keystore.type", _STRING, "JKS", "The format of ssl.keystore.location: PEM or PKCS12.", _STORES
    )
    ssl_keystore_location: str | None = setting(
        "ssl.keystore.location", _STRING, None, "A file with the client's private key and its certificates."
    )
    ssl_keystore_password: str | None = setting(
        "ssl.keystore.password", _PASSWORD, None, "The password of ssl.keystore.location, where it is PKCS12."
    )
    ssl_keystore_key: str | None = setting(
        "ssl.keystore.key", _PASSWORD, None, "The client's private key itself, in PEM (PKCS#8)."
    )
    ssl_keystore_certificate_chain: str | None = setting(
        "ssl.keystore.certificate.chain", _PASSWORD, None, "The client's certificates themselves, in PEM."
    )
    ssl_certificate_location: str | None = setting(
        "ssl.certificate.location", _STRING, None, "A PEM file with the client's certificate."
    )
    ssl_key_location: str | None = setting(
        "ssl.key.location", _STRING, None, "A PEM file with the client's private key."
    )
    ssl_key_password: str | None = setting("ssl.key.password", _PASSWORD, None, "The password of the private key.")
    ssl_endpoint_identification_algorithm: str = setting(
        "ssl.endpoint.identification.algorithm",
        _STRING,
        "https",
        "https checks that a broker's certificate carries its host name; empty does not.",
        one_of("https", "", "none"),
    )

    # SASL

    sasl_mechanism: str = setting(
        "sasl.mechanism",
        _STRING,
        "",
        "How to authenticate, where security.protocol has SASL.",
        one_of(*MECHANISMS, ""),
        aliases=("sasl.mechanisms",),
    )
    sasl_jaas_config: str | None = setting(
        "sasl.jaas.config",
        _PASSWORD,
        None,
        "The credentials as Java clients take them: a login module and its options.",
    )
    sasl_username: str | None = setting(
        "sasl.username", _STRING, None, "The user of PLAIN and SCRAM.", aliases=("sasl.plain.username",)
    )
    sasl_password: str | None = setting(
        "sasl.password", _PASSWORD, None, "The password of PLAIN and SCRAM.", aliases=("sasl.plain.password",)
    )
    sasl_oauthbearer_token_callback: Callable[[], object] | None = setting(
        "sasl.oauthbearer.token.callback",
        _OBJECT,
        None,
        "A function, sync or async, that returns an OAUTHBEARER token: a str, or an OauthToken with its lifetime.",
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        "sasl.oauthbearer.token.endpoint.url", _STRING, None, "Where tokens are asked for with client credentials."
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = setting(
        "sasl.oauthbearer.client.credentials.client.id", _STRING, None, "The client id for the token endpoint."
    )
    sasl_oauthbearer_client_credentials_client_secret: str | None = setting(
        "sasl.oauthbearer.client.credentials.client.secret", _PASSWORD, None, "The secret of that client id."
    )
    sasl_oauthbearer_scope: str | None = setting(
        "sasl.oauthbearer.scope", _STRING, None, "The scope that is asked for at the token endpoint."
    )
    sasl_oauthbearer_header_urlencode: bool = setting(
        "sasl.oauthbearer.header.urlencode",
        _BOOLEAN,
        False,
        "Whether client id and secret are URL-encoded in the header of the request to the token endpoint.",
    )
    sasl_login_connect_timeout_ms: int | None = setting(
        "sasl.login.connect.timeout.ms", _INT, None, "How long connecting to the token endpoint may take."
    )
    sasl_login_read_timeout_ms: int | None = setting(
        "sasl.login.read.timeout.ms", _INT, None, "How long the token endpoint may take to answer."
    )
    sasl_login_retry_backoff_ms: int = setting(
        "sasl.login.retry.backoff.ms", _LONG, 100, "How long to wait before the token endpoint is asked again."
    )
    sasl_login_retry_backoff_max_ms: int = setting(
        "sasl.login.retry.backoff.max.ms", _LONG, 10_000, "The longest such wait."
    )
    sasl_login_refresh_window_factor: float = setting(
        "sasl.login.refresh.window.factor",
        _DOUBLE,
        0.8,
        "A token is replaced once this share of its lifetime is over.",
        between(0.5, 1.0),
    )
