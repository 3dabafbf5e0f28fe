"""What a configuration asks of a connection: TLS or not, SASL or not, and with which secret.

Most processes have no SASL, and those that have it use one mechanism: each is loaded where it is used.
"""

import asyncio
import ssl
from typing import TYPE_CHECKING

from ottla.client.config_security import SecurityConfig
from ottla.client.connections_wire import Connection
from ottla.client.errors import ConfigError
from ottla.client.security.tls import tls_context
from ottla.runtime import Clock, IdSource

if TYPE_CHECKING:
    from ottla.client.security.oauth import Tokens
    from ottla.client.security.sasl import Mechanism

_RENEW_FROM = 0.85
_RENEW_SPREAD = 0.10
_DICE = 1_000_000


class Guard:
    """Made once for a client: files are read here, and settings that do not fit together are refused here."""

    def __init__(self, config: SecurityConfig, clock: Clock, ids: IdSource) -> None:
        self._mechanism = config.sasl_mechanism if config.security_protocol.startswith("SASL") else ""
        self._ids = ids
        self._context = tls_context(config) if config.security_protocol.endswith("SSL") else None
        self._username = self._password = ""
        self._tokens: Tokens | None = None
        if not self._mechanism:
            return
        from ottla.client.security.jaas import options_of

        options = options_of(config.sasl_jaas_config, self._mechanism) if config.sasl_jaas_config else {}
        if self._mechanism == "OAUTHBEARER":
            self._tokens = _tokens(config, options, clock)
            return
        username = options.get("username") if config.sasl_username is None else config.sasl_username
        password = options.get("password") if config.sasl_password is None else config.sasl_password
        if not username or password is None:
            raise ConfigError(f"sasl.mechanism={self._mechanism} needs sasl.username and sasl.password")
        self._username, self._password = username, password

    def tls_context(self) -> ssl.SSLContext | None:
        return self._context

    async def authenticate(self, connection: Connection) -> None:
        """Also in the middle of a connection's life: then nothing else may be asked meanwhile."""
        if not self._mechanism:
            return
        from ottla.client.security.sasl import converse

        who = "the token" if self._tokens is not None else f"user {self._username!r}"
        lifetime_ms = await converse(connection, self._mechanism, await self._new_conversation(), who)
        if lifetime_ms > 0:
            share = _RENEW_FROM + _RENEW_SPREAD * self._ids.below(_DICE) / _DICE
            connection.reauthenticate_at = asyncio.get_running_loop().time() + lifetime_ms * share / 1000

    async def _new_conversation(self) -> "Mechanism":
        from ottla.client.security.sasl import Bearer, Plain
        from ottla.client.security.scram import Scram

        if self._tokens is not None:
            return Bearer(await self._tokens.current())
        if self._mechanism == "PLAIN":
            return Plain(self._username, self._password)
        return Scram(self._mechanism, self._username, self._password, self._ids.uuid().hex())


def _tokens(config: SecurityConfig, options: dict[str, str], clock: Clock) -> "Tokens":
    from ottla.client.security.oauth import Tokens

    return Tokens(config, options, clock)
