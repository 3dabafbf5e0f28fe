"""Questions about quotas, and clients of any name that ask others."""

from collections.abc import Sequence
from typing import TypeVar

from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import encode_request
from ottla.protocol.message import Request, Response
from ottla.protocol.messages import alter_client_quotas, describe_client_quotas
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from ottla.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

EXACT, DEFAULT, ANY_NAME = 0, 1, 2

Answer = TypeVar("Answer", bound=Response)
Names = Sequence[tuple[str, str | None]]
Changes = Sequence[tuple[str, float | None]]
Component = tuple[str, int, str | None]
Entries = list[tuple[list[tuple[str, str | None]], dict[str, float]]]


class NamedClient(WireClient):
    """A connection under a client id of its own."""

    def __init__(self, port: int, client_id: str | None) -> None:
        super().__init__(port)
        self._client_id = client_id

    def send(self, request: Request, version: int | None = None) -> None:
        self._correlation_id += 1
        chosen = request.MAX_VERSION if version is None else version
        self.socket.sendall(encode_request(request, chosen, self._correlation_id, self._client_id))


def alter_request(*entries: tuple[Names, Changes], validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=[
            alter_client_quotas.EntryData(
                entity=[alter_client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in names],
                ops=[
                    alter_client_quotas.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in changes
                ],
            )
            for names, changes in entries
        ],
        validate_only=validate_only,
    )


def alter(
    client: WireClient, *entries: tuple[Names, Changes], validate_only: bool = False, version: int | None = None
) -> list[tuple[list[tuple[str, str | None]], ErrorCode]]:
    """Entities with what became of them, in an order that compares."""
    request = alter_request(*entries, validate_only=validate_only)
    answer = client.ask(request, AlterClientQuotasResponse, version)
    assert all((entry.error_message is None) == (not entry.error_code) for entry in answer.entries)
    found = [
        (sorted((part.entity_type, part.entity_name) for part in entry.entity), ErrorCode(entry.error_code))
        for entry in answer.entries
    ]
    return sorted(found, key=repr)


def set_quota(client: WireClient, names: Names, **limits: float | None) -> None:
    """Change the quotas of one entity, which must work."""
    ((_, code),) = alter(client, (names, list(limits.items())))
    assert code == ErrorCode.NONE


def describe(
    client: WireClient, *components: Component, strict: bool = False, version: int | None = None
) -> tuple[ErrorCode, Entries | None]:
    """What passes the filter, in an order that compares."""
    request = DescribeClientQuotasRequest(
        components=[
            describe_client_quotas.ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )
    answer = client.ask(request, DescribeClientQuotasResponse, version)
    if answer.entries is None:
        assert answer.error_message
        return ErrorCode(answer.error_code), None
    entries = [
        (
            sorted((part.entity_type, part.entity_name) for part in entry.entity),
            dict(sorted((value.key, value.value) for value in entry.values)),
        )
        for entry in answer.entries
    ]
    return ErrorCode(answer.error_code), sorted(entries, key=repr)
