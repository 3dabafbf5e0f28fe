"""Tokens for OAUTHBEARER: where they come from, how long they are kept, and what a broker is told."""

import asyncio
import base64
import json
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.peers.certificates import Authority
from tests.peers.ports import free_port

from ottla.client.config import ProducerConfig, resolve
from ottla.client.errors import AuthenticationFailed, BrokerUnavailable, ConfigError
from ottla.client.security.oauth import OauthToken, Tokens
from ottla.client.security.sasl import Bearer
from ottla.testing.runtime import ManualClock

HOUR_MS = 3_600_000


def a_jwt(expires_at_ms: int) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "alice", "exp": expires_at_ms / 1000}).encode()).decode()
    return f"e30.{claims.rstrip('=')}.x"


def tokens(clock: ManualClock, options: dict[str, str] | None = None, **settings: Any) -> Tokens:
    return Tokens(resolve(ProducerConfig, "localhost:9092", None, settings), options or {}, clock)


def test_a_token_is_used_until_most_of_its_life_is_over() -> None:
    clock = ManualClock()
    given: list[str] = []

    def callback() -> str:
        given.append(a_jwt(clock.now_ms() + HOUR_MS))
        return given[-1]

    async def work() -> None:
        source = tokens(clock, sasl_oauthbearer_token_callback=callback)
        first = await source.current()
        clock.advance(HOUR_MS * 7 // 10)
        assert await source.current() == first
        clock.advance(HOUR_MS * 2 // 10)
        assert await source.current() != first
        assert len(given) == 2

    asyncio.run(work())


def test_those_who_want_one_at_once_share_it_and_one_without_an_end_is_used_once() -> None:
    calls = 0

    async def callback() -> str:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        return "opaque" if calls > 1 else a_jwt(2**50)

    async def work() -> None:
        source = tokens(ManualClock(), sasl_oauthbearer_token_callback=callback)
        await asyncio.gather(*(source.current() for _ in range(5)))
        assert calls == 1
        opaque = tokens(ManualClock(), sasl_oauthbearer_token_callback=callback)
        assert [(await opaque.current()).token for _ in range(2)] == ["opaque", "opaque"]
        assert calls == 3

    asyncio.run(work())


@pytest.mark.parametrize("given", [None, "", 5])
def test_what_is_no_token_is_refused(given: object) -> None:
    source = tokens(ManualClock(), sasl_oauthbearer_token_callback=lambda: given)
    with pytest.raises(AuthenticationFailed, match="must return a token"):
        asyncio.run(source.current())


def test_a_callback_that_fails_is_told() -> None:
    def callback() -> str:
        raise LookupError("no vault")

    with pytest.raises(AuthenticationFailed, match="no vault"):
        asyncio.run(tokens(ManualClock(), sasl_oauthbearer_token_callback=callback).current())


def test_a_bearer_carries_token_and_extensions_and_ends_a_refusal() -> None:
    bearer = Bearer(OauthToken("abc", extensions={"traceId": "1", "logicalCluster": "lkc"}))
    assert bearer.first() == b"n,,\x01auth=Bearer abc\x01logicalCluster=lkc\x01traceId=1\x01\x01"
    assert bearer.answer(b"") is None
    assert bearer.answer(b'{"status":"invalid_token"}') == b"\x01"


class Endpoint:
    """A token endpoint that answers what a test decides: a status and a text, or these very bytes and no more."""

    def __init__(self, port: int, scheme: str) -> None:
        self.url = f"{scheme}://127.0.0.1:{port}/token"
        self.answers: list[tuple[int, str] | bytes] = []
        self.asked: list[tuple[str, dict[str, list[str]]]] = []


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            known.asked.append((self.headers["Authorization"], urllib.parse.parse_qs(body)))
            answer = known.answers.pop(0)
            if isinstance(answer, bytes):
                self.wfile.write(answer)
                return
            status, text = answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has that name
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    known = Endpoint(server.server_port, "http" if tls is None else "https")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as known:
        yield known


CREDENTIALS: dict[str, Any] = {
    "sasl_oauthbearer_client_credentials_client_id": "me",
    "sasl_oauthbearer_client_credentials_client_secret": "s3 cret",
    "sasl_login_retry_backoff_ms": 1,
}


def test_client_credentials_are_exchanged_for_a_token(endpoint: Endpoint) -> None:
    clock = ManualClock()
    endpoint.answers = [(200, json.dumps({"access_token": "abc", "expires_in": 100}))]
    source = tokens(
        clock, sasl_oauthbearer_token_endpoint_url=endpoint.url, sasl_oauthbearer_scope="kafka", **CREDENTIALS
    )
    token = asyncio.run(source.current())
    assert token.token == "abc"
    assert token.expires_at_ms == clock.now_ms() + 100_000
    header, form = endpoint.asked[0]
    assert base64.b64decode(header.removeprefix("Basic ")) == b"me:s3 cret"
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}


def test_credentials_may_stand_in_the_jaas_options_and_be_encoded(endpoint: Endpoint) -> None:
    endpoint.answers = [(200, json.dumps({"access_token": "abc"}))]
    source = tokens(
        ManualClock(),
        {"clientId": "i d", "clientSecret": "x", "scope": "all", "extension_a": "b"},
        sasl_oauthbearer_token_endpoint_url=endpoint.url,
        sasl_oauthbearer_header_urlencode=True,
    )
    assert asyncio.run(source.current()).extensions == {"a": "b"}
    header, form = endpoint.asked[0]
    assert base64.b64decode(header.removeprefix("Basic ")) == b"i+d:x"
    assert form["scope"] == ["all"]


def test_an_endpoint_with_a_problem_is_asked_again(endpoint: Endpoint) -> None:
    endpoint.answers = [(503, "later"), (200, json.dumps({"access_token": "abc"}))]
    source = tokens(ManualClock(), sasl_oauthbearer_token_endpoint_url=endpoint.url, **CREDENTIALS)
    assert asyncio.run(source.current()).token == "abc"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n",
        b"what\r\n\r\n",
        b"",
    ],
)
def test_an_endpoint_that_breaks_off_is_asked_again(endpoint: Endpoint, answer: bytes) -> None:
    endpoint.answers = [answer, (200, json.dumps({"access_token": "abc"}))]
    source = tokens(ManualClock(), sasl_oauthbearer_token_endpoint_url=endpoint.url, **CREDENTIALS)
    assert asyncio.run(source.current()).token == "abc"


@pytest.mark.parametrize(
    ("status", "text", "reason"),
    [
        (401, "{}", "401.*check the client id"),
        (200, "<html>", "no access_token"),
        (200, "[]", "no access_token"),
        (200, "{}", "no access_token"),
    ],
)
def test_an_endpoint_that_refuses_is_not_asked_again(endpoint: Endpoint, status: int, text: str, reason: str) -> None:
    endpoint.answers = [(status, text)]
    source = tokens(ManualClock(), sasl_oauthbearer_token_endpoint_url=endpoint.url, **CREDENTIALS)
    with pytest.raises(AuthenticationFailed, match=reason):
        asyncio.run(source.current())
    assert len(endpoint.asked) == 1


def test_an_endpoint_that_cannot_be_reached_is_told() -> None:
    url = f"http://127.0.0.1:{free_port()}/token"
    source = tokens(ManualClock(), sasl_oauthbearer_token_endpoint_url=url, **CREDENTIALS)
    with pytest.raises(BrokerUnavailable, match="cannot be reached, so there is no token"):
        asyncio.run(source.current())


def test_an_endpoint_with_tls_is_asked_when_its_authority_is_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = authority.issue("tokens")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    with serving(context) as endpoint:
        endpoint.answers = [(200, json.dumps({"access_token": "abc"}))]
        settings = {"sasl_oauthbearer_token_endpoint_url": endpoint.url, **CREDENTIALS}
        with pytest.raises(AuthenticationFailed, match=r"TLS with .*ssl\.ca\.location"):
            asyncio.run(tokens(ManualClock(), **settings).current())
        trusting = tokens(ManualClock(), **settings, ssl_ca_location=str(authority.certificate))
        assert asyncio.run(trusting.current()).token == "abc"


def test_a_token_may_be_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("abc\n")
    source = tokens(ManualClock(), sasl_oauthbearer_token_endpoint_url=path.as_uri())
    assert asyncio.run(source.current()).token == "abc"
    path.unlink()
    with pytest.raises(AuthenticationFailed, match="cannot be read"):
        asyncio.run(source.current())


def test_a_source_is_needed_and_must_be_complete() -> None:
    with pytest.raises(ConfigError, match="sasl_oauthbearer_token_callback"):
        tokens(ManualClock())
    for url, reason in (("ftp://x/", "neither an http"), ("http://127.0.0.1:1/", "client.id")):
        with pytest.raises(ConfigError, match=reason):
            asyncio.run(tokens(ManualClock(), sasl_oauthbearer_token_endpoint_url=url).current())
