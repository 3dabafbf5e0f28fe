"""Access rules on a broker without an authorizer."""

import pytest
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request
from ottla.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ottla.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

TOPIC, LITERAL, READ, ALLOW, ANY, UNKNOWN, FROM_THE_FUTURE = 2, 3, 3, 3, 1, 0, 99
REASON = "this broker has no authorizer, so there are no access rules"


def describe(resource_type: int = ANY, pattern: int = ANY, operation: int = ANY, permission: int = ANY) -> Request:
    return DescribeAclsRequest(
        resource_type_filter=resource_type,
        resource_name_filter=None,
        pattern_type_filter=pattern,
        principal_filter=None,
        host_filter=None,
        operation=operation,
        permission_type=permission,
    )


def creation(
    resource_type: int = TOPIC, pattern: int = LITERAL, operation: int = READ, permission: int = ALLOW
) -> AclCreation:
    return AclCreation(
        resource_type=resource_type,
        resource_name="orders",
        resource_pattern_type=pattern,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=permission,
    )


def deletion(resource_type: int = ANY, pattern: int = ANY, operation: int = ANY, permission: int = ANY) -> Request:
    wanted = DeleteAclsFilter(
        resource_type_filter=resource_type,
        resource_name_filter=None,
        pattern_type_filter=pattern,
        principal_filter=None,
        host_filter=None,
        operation=operation,
        permission_type=permission,
    )
    return DeleteAclsRequest(filters=[wanted, wanted])


def create(
    resource_type: int = TOPIC, pattern: int = LITERAL, operation: int = READ, permission: int = ALLOW
) -> Request:
    return CreateAclsRequest(creations=[creation(), creation(resource_type, pattern, operation, permission)])


def check_words(target: str, *messages: str | None) -> None:
    """Each refusal has words. Kafka has its own."""
    for message in messages:
        assert message if target == "kafka" else message == REASON


@pytest.mark.parametrize("version", [1, 2, 3])
def test_no_rules_can_be_described(client: WireClient, target: str, version: int) -> None:
    answer = client.ask(describe(pattern=LITERAL), DescribeAclsResponse, version)
    check_words(target, answer.error_message)
    expected = DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=answer.error_message)
    assert answer == expected


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_no_rules_can_be_created(client: WireClient, target: str, version: int, count: int) -> None:
    request = CreateAclsRequest(creations=[creation() for _ in range(count)])
    answer = client.ask(request, CreateAclsResponse, version)
    words = [result.error_message for result in answer.results]
    check_words(target, *words)
    refused = [AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=each) for each in words]
    assert len(refused) == count
    assert answer == CreateAclsResponse(results=refused)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_no_rules_can_be_deleted(client: WireClient, target: str, version: int) -> None:
    answer = client.ask(deletion(pattern=LITERAL), DeleteAclsResponse, version)
    words = [result.error_message for result in answer.filter_results]
    check_words(target, *words)
    refused = [DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=each) for each in words]
    assert len(refused) == 2
    assert answer == DeleteAclsResponse(filter_results=refused)


@pytest.mark.parametrize("field", ["resource_type", "pattern", "operation", "permission"])
@pytest.mark.parametrize("ask", [describe, create, deletion])
def test_what_the_client_itself_does_not_know_ends_the_connection(client: WireClient, ask: object, field: str) -> None:
    assert callable(ask)
    client.send(ask(**{field: UNKNOWN}))
    assert client.is_closed()


@pytest.mark.parametrize("field", ["resource_type", "pattern", "operation", "permission"])
def test_words_of_a_newer_client(client: WireClient, field: str) -> None:
    """A code that nobody knows yet is not worse than any other: the rules are not looked at."""
    answer = client.ask(describe(**{field: FROM_THE_FUTURE}), DescribeAclsResponse)
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
