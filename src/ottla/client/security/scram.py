"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), the client's side, sans-IO.

    client-first   n,,n=<user>,r=<nonce>
    server-first   r=<nonce + more>,s=<salt>,i=<iterations>
    client-final   c=biws,r=<whole nonce>,p=<proof>
    server-final   v=<signature>, or e=<error>

The password never travels, and the signature shows that the server knows it too: a server that cannot sign is refused.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

from ottla.client.errors import AuthenticationFailed

LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 1_000_000
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NO_CHANNEL_BINDING = b"n,,"


class Scram:
    """One conversation. `nonce` is printable text without a comma, never used before."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str) -> None:
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        self._first_bare = f"n={_escaped(username)},r={nonce}".encode()
        self._server_signature: bytes | None = None
        self._is_done = False

    def first(self) -> bytes:
        return _NO_CHANNEL_BINDING + self._first_bare

    def answer(self, challenge: bytes) -> bytes | None:
        """What to send next, None when the server has proven itself; AuthenticationFailed otherwise."""
        if self._server_signature is None:
            return self._final(challenge)
        self._verify(challenge)
        return None

    def _final(self, challenge: bytes) -> bytes:
        told = _ServerFirst.parse(challenge)
        if not told.nonce.startswith(self._nonce) or len(told.nonce) == len(self._nonce):
            raise AuthenticationFailed(
                "the broker did not continue the nonce of the client: it does not speak SCRAM well"
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, told.salt, told.iterations)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c={base64.b64encode(_NO_CHANNEL_BINDING).decode()},r={told.nonce}".encode()
        conversation = b",".join((self._first_bare, challenge, without_proof))
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), conversation)
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), conversation)
        return without_proof + b",p=" + base64.b64encode(proof)

    def _verify(self, challenge: bytes) -> None:
        fields = _fields(challenge)
        if "e" in fields:
            raise AuthenticationFailed(f"the broker refused the user or the password: {fields['e']}")
        assert self._server_signature is not None
        if not hmac.compare_digest(_decoded(fields.get("v", "")), self._server_signature):
            raise AuthenticationFailed(
                "the broker could not prove that it knows the password: it is not the one it pretends to be"
            )

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


@dataclass(frozen=True, slots=True)
class _ServerFirst:
    nonce: str
    salt: bytes
    iterations: int

    @classmethod
    def parse(cls, challenge: bytes) -> "_ServerFirst":
        fields = _fields(challenge)
        iterations = fields.get("i", "")
        if "e" in fields:
            raise AuthenticationFailed(f"the broker refused the user or the password: {fields['e']}")
        if "m" in fields or not fields.get("r") or not fields.get("s") or not iterations.isdecimal():
            raise AuthenticationFailed("the broker's part of SCRAM is not readable")
        if not LEAST_ITERATIONS <= int(iterations[:10]) <= MOST_ITERATIONS:
            raise AuthenticationFailed(
                f"the broker asks for {iterations[:20]} iterations of SCRAM, from {LEAST_ITERATIONS} to "
                f"{MOST_ITERATIONS} are allowed: store the user's credentials anew with such a number"
            )
        return cls(fields["r"], _decoded(fields["s"]), int(iterations))


def _fields(challenge: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    for piece in challenge.decode(errors="replace").split(","):
        name, _, value = piece.partition("=")
        fields.setdefault(name, value)
    return fields


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise AuthenticationFailed("the broker's part of SCRAM is not readable") from None


def _escaped(username: str) -> str:
    return username.replace("=", "=3D").replace(",", "=2C")
