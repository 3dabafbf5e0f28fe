"""The settings that all clients have, and those of the admin client, which has no others."""

from dataclasses import dataclass, replace
from typing import Self

from ottla.client.config_security import SecurityConfig
from ottla.client.config_settings import INT32_MAX, Check, Kind, at_least, one_of, setting
from ottla.client.errors import ConfigError

_INT, _LONG, _STRING, _LIST = Kind.INT, Kind.LONG, Kind.STRING, Kind.LIST
_BUFFER = Check(lambda value: bool(value >= -1), "or -1 for what the operating system chooses")


@dataclass(frozen=True, kw_only=True)
class ClientConfig(SecurityConfig):
    """What all clients have."""

    bootstrap_servers: tuple[str, ...] = setting(
        "bootstrap.servers", _LIST, (), "Some brokers of the cluster, host:port; the others are learned from them."
    )
    client_id: str = setting("client.id", _STRING, "ottla", "A name for quotas, metrics and logs of the brokers.")
    client_rack: str = setting("client.rack", _STRING, "", "The rack of this client: to read from a replica near by.")
    metadata_max_age_ms: int = setting(
        "metadata.max.age.ms", _LONG, 300_000, "What is known of the cluster is asked for anew after this.", at_least(0)
    )
    metadata_recovery_strategy: str = setting(
        "metadata.recovery.strategy",
        _STRING,
        "rebootstrap",
        "rebootstrap: when no known broker can be reached, begin again with bootstrap.servers.",
        one_of("rebootstrap", "none"),
    )
    metadata_recovery_rebootstrap_trigger_ms: int = setting(
        "metadata.recovery.rebootstrap.trigger.ms",
        _LONG,
        300_000,
        "Begin again with bootstrap.servers when nothing was learned of the cluster for this long.",
        at_least(0),
    )
    send_buffer_bytes: int = setting("send.buffer.bytes", _INT, -1, "The socket's buffer for sending.", _BUFFER)
    receive_buffer_bytes: int = setting("receive.buffer.bytes", _INT, -1, "The socket's buffer for receiving.", _BUFFER)
    receive_message_max_bytes: int = setting(
        "receive.message.max.bytes",
        _INT,
        268_435_456,
        "The largest answer of a broker; a larger one closes the connection.",
        at_least(1000),
    )
    reconnect_backoff_ms: int = setting(
        "reconnect.backoff.ms", _LONG, 50, "The first wait before a broker is connected to again.", at_least(0)
    )
    reconnect_backoff_max_ms: int = setting(
        "reconnect.backoff.max.ms", _LONG, 1_000, "The longest such wait; it doubles from one to the next.", at_least(0)
    )
    retry_backoff_ms: int = setting(
        "retry.backoff.ms", _LONG, 100, "The first wait before a request is sent again.", at_least(0)
    )
    retry_backoff_max_ms: int = setting(
        "retry.backoff.max.ms", _LONG, 1_000, "The longest such wait; it doubles from one to the next.", at_least(0)
    )
    retries: int = setting("retries", _INT, INT32_MAX, "How often a request is sent again.", at_least(0))
    request_timeout_ms: int = setting(
        "request.timeout.ms", _INT, 30_000, "How long a broker may take for an answer.", at_least(0)
    )
    default_api_timeout_ms: int = setting(
        "default.api.timeout.ms", _INT, 60_000, "How long a call may take that is given no timeout.", at_least(0)
    )
    socket_connection_setup_timeout_ms: int = setting(
        "socket.connection.setup.timeout.ms", _LONG, 10_000, "How long connecting may take.", at_least(1)
    )
    socket_connection_setup_timeout_max_ms: int = setting(
        "socket.connection.setup.timeout.max.ms", _LONG, 30_000, "The same after failures: it doubles.", at_least(1)
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms", _LONG, 540_000, "A connection that is not used for this long is closed; -1 never."
    )

    @property
    def creates_topics(self) -> bool:
        """Whether asking for a topic may create it, where the brokers allow that."""
        return False

    def settled(self, given: frozenset[str]) -> Self:
        """This, with the rules about settings that depend on each other; `given` are the fields that somebody set."""
        settled = self
        if "reconnect_backoff_ms" in given and "reconnect_backoff_max_ms" not in given:
            settled = replace(settled, reconnect_backoff_max_ms=self.reconnect_backoff_ms)
        if self.security_protocol.startswith("SASL") and not self.sasl_mechanism:
            raise ConfigError(
                f"security.protocol={self.security_protocol} needs sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 "
                "or OAUTHBEARER (GSSAPI, Kafka's default, is not supported)"
            )
        return settled


@dataclass(frozen=True, kw_only=True)
class AdminConfig(ClientConfig):
    """The settings of an admin client."""

    client_id: str = setting("client.id", _STRING, "ottla-admin", "A name for quotas, metrics and logs.")
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms", _LONG, 300_000, "A connection that is not used for this long is closed; -1 never."
    )
