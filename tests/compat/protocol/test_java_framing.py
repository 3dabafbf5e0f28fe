"""Headers, API keys and error codes against Apache Kafka's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.compat.protocol.oracle import JavaOracle

from ottla.protocol import framing
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode
from ottla.protocol.registry import BROKER_APIS, request_class


@pytest.fixture(scope="module")
def apis(java: JavaOracle) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(java.ask("apis").values[0])
    return found


def test_error_codes(java: JavaOracle) -> None:
    expected = [(one["code"], one["name"], one["retriable"]) for one in json.loads(java.ask("errors").values[0])]
    assert sorted((int(code), code.name, code.retriable) for code in ErrorCode) == sorted(expected)


def test_api_keys(apis: list[dict[str, Any]]) -> None:
    assert [(int(key), key.name) for key in ApiKey] == [(api["key"], api["name"]) for api in apis]
    assert [int(key) for key in BROKER_APIS] == [api["key"] for api in apis if api["broker"]]


@pytest.mark.parametrize("client_id", [None, "", "consumer-1", "ž" * 100])
def test_request_headers(client_id: str | None, apis: list[dict[str, Any]], java: JavaOracle) -> None:
    for api in apis:
        cls = request_class(api["key"])
        if cls is None:
            continue
        for version, (header_version, _) in enumerate(api["headers"], api["first"]):
            request = cls()
            frame = framing.encode_request(request, version, 7, client_id)
            fields = {
                "requestApiKey": api["key"],
                "requestApiVersion": version,
                "correlationId": 7,
                "clientId": client_id,
            }
            expected = java.ask("write", "RequestHeader", header_version, json.dumps(fields)).data
            body = request.encode(version)
            assert frame == (len(expected) + len(body)).to_bytes(4, "big") + expected + body
            header, position = framing.decode_request_header(frame[4:])
            assert header == framing.RequestHeader(api["key"], version, 7, client_id)
            assert position == len(expected)


def test_response_headers(apis: list[dict[str, Any]], java: JavaOracle) -> None:
    for api in apis:
        cls = request_class(api["key"])
        if cls is None:
            continue
        for version, (_, header_version) in enumerate(api["headers"], api["first"]):
            response = cls.RESPONSE()
            expected = java.ask("write", "ResponseHeader", header_version, json.dumps({"correlationId": -3})).data
            body = response.encode(version)
            (frame,) = framing.encode_response(cls, version, -3, response)
            assert frame == (len(expected) + len(body)).to_bytes(4, "big") + expected + body
            assert framing.decode_response(cls, version, frame[4:]) == (-3, response)
