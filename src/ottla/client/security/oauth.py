"""Tokens for OAUTHBEARER: where they come from, and for how long they are used.

| source                                | settings                                                                  |
|---------------------------------------|---------------------------------------------------------------------------|
| a function of the user, sync or async | `sasl_oauthbearer_token_callback`                                         |
| client credentials (OAuth 2)          | `sasl.oauthbearer.token.endpoint.url` over HTTP, with client id and secret |
| a file                                | the same with a `file:` URL, read anew for each token                     |

A token with a known end of life is used until `sasl.login.refresh.window.factor` of its life is over; one without is
used for one connection.
"""

import asyncio
import base64
import http.client
import inspect
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ottla.client.config_security import SecurityConfig
from ottla.client.errors import AuthenticationFailed, BrokerUnavailable, ConfigError
from ottla.client.security.tls import web_context
from ottla.runtime import Clock

_ATTEMPTS = 4
_DEFAULT_TIMEOUT_SECONDS = 10.0
_MOST_ANSWER_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class OauthToken:
    """A token, when its life ends (milliseconds since the epoch), and SASL extensions that go with it."""

    token: str = field(repr=False)
    expires_at_ms: int | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


class Tokens:
    """Hands out tokens for one client. `options` are those of `sasl.jaas.config`."""

    def __init__(self, config: SecurityConfig, options: Mapping[str, str], clock: Clock) -> None:
        self._config = config
        self._options = options
        self._clock = clock
        self._current: OauthToken | None = None
        self._refresh_at_ms = 0
        self._lock = asyncio.Lock()
        if config.sasl_oauthbearer_token_callback is None and config.sasl_oauthbearer_token_endpoint_url is None:
            raise ConfigError(
                "OAUTHBEARER needs sasl_oauthbearer_token_callback, or sasl.oauthbearer.token.endpoint.url with client "
                "credentials"
            )

    async def current(self) -> OauthToken:
        """A token that is still good. Those who want one at the same time share it."""
        async with self._lock:
            now_ms = self._clock.now_ms()
            if self._current is not None and now_ms < self._refresh_at_ms:
                return self._current
            token = await self._fresh()
            self._current = token
            lifetime_ms = 0 if token.expires_at_ms is None else token.expires_at_ms - now_ms
            self._refresh_at_ms = now_ms + int(lifetime_ms * self._config.sasl_login_refresh_window_factor)
            return token

    async def _fresh(self) -> OauthToken:
        callback = self._config.sasl_oauthbearer_token_callback
        if callback is None:
            return await self._from_endpoint()
        try:
            if inspect.iscoroutinefunction(callback):
                given = await callback()
            else:
                given = await asyncio.get_running_loop().run_in_executor(None, callback)
                if inspect.isawaitable(given):
                    given = await given
        except Exception as error:
            raise AuthenticationFailed(f"sasl_oauthbearer_token_callback failed: {error!r}") from error
        if isinstance(given, str) and given:
            return OauthToken(given, _expiry_of(given), self._extensions())
        if isinstance(given, OauthToken):
            return given
        raise AuthenticationFailed("sasl_oauthbearer_token_callback must return a token as str, or an OauthToken")

    def _extensions(self) -> dict[str, str]:
        prefix = "extension_"
        return {name.removeprefix(prefix): text for name, text in self._options.items() if name.startswith(prefix)}

    async def _from_endpoint(self) -> OauthToken:
        """Ask the token endpoint, again when it cannot be reached or has a problem of its own."""
        loop = asyncio.get_running_loop()
        wait_ms = self._config.sasl_login_retry_backoff_ms
        for attempt in range(_ATTEMPTS):
            try:
                text = await loop.run_in_executor(None, self._ask_endpoint)
            except BrokerUnavailable:
                if attempt == _ATTEMPTS - 1:
                    raise
                await asyncio.sleep(min(wait_ms, self._config.sasl_login_retry_backoff_max_ms) / 1000)
                wait_ms *= 2
            else:
                return self._parsed(text)
        raise AssertionError("the last attempt returns or raises")

    def _ask_endpoint(self) -> str:
        """Blocking: runs beside the loop."""
        url = self._config.sasl_oauthbearer_token_endpoint_url or ""
        parts = urllib.parse.urlsplit(url)
        if parts.scheme == "file":
            return self._read_file(urllib.request.url2pathname(parts.path))
        if parts.scheme not in ("http", "https"):
            raise ConfigError(f"sasl.oauthbearer.token.endpoint.url={url} is neither an http, an https nor a file URL")
        context = web_context(self._config) if parts.scheme == "https" else None
        times = (self._config.sasl_login_connect_timeout_ms, self._config.sasl_login_read_timeout_ms)
        timeout = max((time_ms / 1000 for time_ms in times if time_ms), default=_DEFAULT_TIMEOUT_SECONDS)
        try:
            with urllib.request.urlopen(self._request(url), timeout=timeout, context=context) as answer:
                data = answer.read(_MOST_ANSWER_BYTES)
                if answer.length and len(data) < _MOST_ANSWER_BYTES:
                    raise http.client.IncompleteRead(data, answer.length)
                return str(data, "utf-8", "replace")
        except urllib.error.HTTPError as error:
            with error:
                text = f"{url} answered {error.code} {error.reason}"
            if error.code in (400, 401, 403, 404, 405):
                raise AuthenticationFailed(f"{text}: check the client id, the client secret and the scope") from error
            raise BrokerUnavailable(f"{text}: there is no token") from error
        except (urllib.error.URLError, OSError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, ssl.SSLError):
                raise AuthenticationFailed(
                    f"TLS with {url} failed, so there is no token: {reason}. ssl.ca.location or "
                    "ssl.truststore.location may name the authority of its certificate"
                ) from error
            raise BrokerUnavailable(f"{url} cannot be reached, so there is no token: {reason}") from error
        except http.client.HTTPException as error:
            raise BrokerUnavailable(f"{url} gave an answer that is none, so there is no token: {error!r}") from error

    def _read_file(self, path: str) -> str:
        try:
            return json.dumps({"access_token": Path(path).read_text().strip()})
        except OSError as error:
            raise AuthenticationFailed(f"the token cannot be read from {path}: {error.strerror}") from error

    def _request(self, url: str) -> urllib.request.Request:
        config, options = self._config, self._options
        client_id = config.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
        secret = config.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret")
        if not client_id or not secret:
            raise ConfigError(
                "tokens need sasl.oauthbearer.client.credentials.client.id and .client.secret, or clientId and "
                "clientSecret in sasl.jaas.config"
            )
        if config.sasl_oauthbearer_header_urlencode:
            client_id, secret = urllib.parse.quote_plus(client_id), urllib.parse.quote_plus(secret)
        form = {"grant_type": "client_credentials"}
        if scope := config.sasl_oauthbearer_scope or options.get("scope"):
            form["scope"] = scope
        credentials = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        headers = {
            "Authorization": f"Basic {credentials}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        return urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers, method="POST")

    def _parsed(self, text: str) -> OauthToken:
        try:
            answer: Any = json.loads(text)
            token = answer["access_token"]
        except (ValueError, KeyError, TypeError):
            token = None
        if not isinstance(token, str) or not token:
            raise AuthenticationFailed("the token endpoint gave no access_token: is it the right URL?")
        expires_in = answer.get("expires_in")
        by_answer = self._clock.now_ms() + int(expires_in * 1000) if isinstance(expires_in, int | float) else None
        return OauthToken(token, _expiry_of(token) or by_answer, self._extensions())


def _expiry_of(token: str) -> int | None:
    """When a JSON web token ends, by its own words; None where it is something else or does not tell."""
    pieces = token.split(".")
    if len(pieces) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(pieces[1] + "=" * (-len(pieces[1]) % 4)))
        return int(claims["exp"] * 1000)
    except (ValueError, KeyError, TypeError):
        return None
