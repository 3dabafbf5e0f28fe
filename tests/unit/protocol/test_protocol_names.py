"""Numbers, names and ids: error codes, API keys, the registry, UUIDs."""

import sys
from typing import Any

import pytest

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode, KafkaError, UnsupportedVersion
from ottla.protocol.registry import BROKER_APIS, request_class
from ottla.protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text


def test_error_codes_know_whether_to_retry() -> None:
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.retriable
    assert not ErrorCode.NONE.retriable
    assert not ErrorCode.TOPIC_AUTHORIZATION_FAILED.retriable


def test_a_code_of_a_newer_peer_is_an_unknown_error() -> None:
    assert ErrorCode(9999) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert ErrorCode(-(2**15)) is ErrorCode.UNKNOWN_SERVER_ERROR
    no_codes: list[Any] = [2**15, "NONE", None]
    for value in no_codes:
        with pytest.raises(ValueError, match="is not a valid ErrorCode"):
            ErrorCode(value)


def test_an_error_carries_code_and_message() -> None:
    error = KafkaError(ErrorCode.INVALID_RECORD, "expected a key, there is none")
    assert (error.code, error.message, str(error)) == (
        87,
        "expected a key, there is none",
        "expected a key, there is none",
    )
    assert KafkaError(ErrorCode.NOT_CONTROLLER).message == "NOT_CONTROLLER"
    assert UnsupportedVersion("too old").code is ErrorCode.UNSUPPORTED_VERSION


def test_every_api_that_brokers_offer_has_a_class() -> None:
    for key in BROKER_APIS:
        cls = request_class(key)
        assert cls is not None
        assert cls.API_KEY is key
        assert cls.RESPONSE.API_KEY is key
        assert cls is request_class(int(key))


@pytest.mark.parametrize("key", [-1, 4, 1000, int(ApiKey.VOTE), int(ApiKey.ENVELOPE)])
def test_other_numbers_have_none(key: int) -> None:
    assert request_class(key) is None


def test_modules_load_when_they_are_asked_for() -> None:
    assert request_class(ApiKey.UNREGISTER_BROKER) is not None
    assert "ottla.protocol.messages.unregister_broker" in sys.modules


def test_uuid_text() -> None:
    uuid = bytes.fromhex("fb00ff3e9c0b4c8f8a52d2f3a1b2c3d4")
    assert uuid_to_text(uuid) == "-wD_PpwLTI-KUtLzobLD1A"
    assert uuid_from_text("-wD_PpwLTI-KUtLzobLD1A") == uuid
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    "text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAA!", "AAAAAAAAAAAAAAAAAAAAAB", "ž" * 22]
)
def test_text_that_is_no_uuid(text: str) -> None:
    with pytest.raises(ValueError, match="22 characters"):
        uuid_from_text(text)


def test_bytes_that_are_no_uuid() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        uuid_to_text(b"short")
