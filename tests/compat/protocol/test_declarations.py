"""Every declaration, field by field, against the definitions inside Apache Kafka's own jar."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.property.protocol.samples import ALL_MESSAGES

from ottla.protocol.message import Message, Request
from ottla.protocol.schema import UNSET, Field, StructType, Versions

UNRELEASED = {"InitProducerId": 6}
"""The newest version of these is not offered by brokers unless unreleased features are switched on."""


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def valid_versions(definition: dict[str, Any]) -> Versions:
    first, last = Versions.parse(definition["validVersions"])
    unreleased = UNRELEASED.get(re.sub("(Request|Response)$", "", definition["name"]))
    return Versions(first, unreleased - 1 if unreleased else last)


def overlap(left: Versions, right: Versions) -> bool:
    return left.first in right or right.first in left


def expected_default(field: dict[str, Any]) -> Any:
    given = field.get("default")
    kind = field["type"]
    if given == "null" or kind == "records":
        return None
    if kind.startswith("[]") or kind[0].isupper():
        assert given is None
        return UNSET
    if kind == "bool":
        return str(given).lower() == "true"
    if kind == "string":
        return given or ""
    plain: dict[str, object] = {"bytes": b"", "uuid": bytes(16), "float64": 0.0}
    if kind in plain:
        assert given is None
        return plain[kind]
    return int(str(given or 0), 0)


def describe_expected(field: dict[str, Any], valid: Versions) -> dict[str, object]:
    nullable = Versions.parse(field["nullableVersions"]) if "nullableVersions" in field else None
    assert field.get("taggedVersions", field["versions"]) == field["versions"], "tagged in some versions only"
    return {
        "name": snake_case(field["name"]),
        "type": field["type"].removeprefix("[]"),
        "is_array": field["type"].startswith("[]"),
        "versions": Versions.parse(field["versions"]),
        "nullable": nullable if nullable and overlap(nullable, valid) else None,
        "default": expected_default(field),
        "tag": field.get("tag"),
        "ignorable": str(field.get("ignorable", False)).lower() == "true",
    }


def describe_declared(field: Field, struct_name: str) -> dict[str, object]:
    is_struct = isinstance(field.type, StructType)
    return {
        "name": field.name,
        "type": struct_name if is_struct else field.type.name,  # type: ignore[union-attr]  # is_struct says it is not
        "is_array": field.is_array,
        "versions": field.versions,
        "nullable": field.nullable,
        "default": field.default,
        "tag": field.tag,
        "ignorable": field.ignorable,
    }


def compare(cls: StructType, fields: list[dict[str, Any]], valid: Versions, common: dict[str, Any]) -> int:
    """Compare a struct and all within it; returns how many fields were compared."""
    served = [field for field in fields if overlap(Versions.parse(field["versions"]), valid)]
    assert [one.name for one in cls.FIELDS] == [snake_case(field["name"]) for field in served], cls
    compared = len(served)
    for one, field in zip(cls.FIELDS, served, strict=True):
        assert "flexibleVersions" not in field
        element = field["type"].removeprefix("[]")
        assert describe_declared(one, element) == describe_expected(field, valid), f"{cls.__name__}.{one.name}"
        if isinstance(one.type, StructType):
            assert one.type.__name__ in (element, element + "Response")
            compared += compare(one.type, field.get("fields") or common[element], valid, common)
    return compared


@pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)
def test_declaration_is_kafkas(cls: type[Message], kafka_definitions: dict[str, dict[str, Any]]) -> None:
    definition = kafka_definitions[cls.__name__]
    valid = valid_versions(definition)
    flexible = definition["flexibleVersions"]
    assert valid == Versions(cls.MIN_VERSION, cls.MAX_VERSION)
    assert (None if flexible == "none" else Versions.parse(flexible).first) == cls.FLEXIBLE_SINCE
    if issubclass(cls, Request):
        assert definition["apiKey"] == cls.API_KEY
        assert cls.RESPONSE.__name__ == cls.__name__.removesuffix("Request") + "Response"
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    assert compare(cls, definition["fields"], valid, common) >= len(cls.FIELDS)


def test_no_message_that_brokers_serve_is_missing(kafka_definitions: dict[str, dict[str, Any]]) -> None:
    served = {
        name.removesuffix("Request") for name, one in kafka_definitions.items() if "broker" in one.get("listeners", ())
    }
    messages = {api + kind for api in served for kind in ("Request", "Response")}
    protocol = {name for name in kafka_definitions if name.startswith("ConsumerProtocol")}
    assert len(served) == 77
    assert {cls.__name__ for cls in ALL_MESSAGES} == messages | protocol


def test_versions_left_out_are_the_unreleased_ones(kafka_definitions: dict[str, dict[str, Any]]) -> None:
    unreleased = {
        name.removesuffix("Request"): Versions.parse(one["validVersions"]).last
        for name, one in kafka_definitions.items()
        if str(one.get("latestVersionUnstable", False)).lower() == "true" and "broker" in one.get("listeners", ())
    }
    assert unreleased == UNRELEASED
