"""SCRAM against the examples of its RFCs, and against servers that do not keep to it."""

import pytest

from ottla.client.errors import AuthenticationFailed
from ottla.client.security.scram import Scram

# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
WHOLE_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={WHOLE_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
CLIENT_FINAL = f"c=biws,r={WHOLE_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def conversation() -> Scram:
    return Scram("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_the_example_of_the_rfc() -> None:
    client = conversation()
    assert client.first() == b"n,,n=user,r=" + NONCE.encode()
    assert client.answer(SERVER_FIRST) == CLIENT_FINAL
    assert client.answer(SERVER_FINAL) is None


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    client = conversation()
    client.answer(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match="could not prove"):
        client.answer(b"v=" + b"A" * 43 + b"=")


def test_an_error_of_the_server_is_told() -> None:
    client = conversation()
    client.answer(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match="invalid-proof"):
        client.answer(b"e=invalid-proof")


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(), "nonce"),
        (f"r={WHOLE_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1".encode(), "1 iterations"),
        (f"r={WHOLE_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999999999999999".encode(), "iterations"),
        (f"r={WHOLE_NONCE},s=%%%,i=4096".encode(), "not readable"),
        (f"r={WHOLE_NONCE},i=4096".encode(), "not readable"),
        (b"m=extension," + SERVER_FIRST, "not readable"),
        (b"", "not readable"),
        (b"\xff\xfe", "not readable"),
        (b"e=other-error", "other-error"),
    ],
)
def test_a_server_that_does_not_keep_to_it_is_refused(challenge: bytes, reason: str) -> None:
    with pytest.raises(AuthenticationFailed, match=reason):
        conversation().answer(challenge)


def test_names_with_commas_and_equal_signs_are_escaped() -> None:
    assert Scram("SCRAM-SHA-512", "a,b=c", "x", "n").first() == b"n,,n=a=2Cb=3Dc,r=n"
