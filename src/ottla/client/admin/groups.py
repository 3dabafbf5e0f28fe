"""Groups: list, describe, delete, and take members out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Call, Outcomes
from ottla.client.admin.failures import failure
from ottla.client.admin.group_members import (
    GroupDescription,
    GroupMember,
    described_classic,
    described_consumer,
)
from ottla.client.admin.results import Results, merged
from ottla.client.errors import BrokerError, InvalidRequest, OttlaError, UnsupportedByBroker
from ottla.client.network import CoordinatorKind, broker_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

__all__ = ["GroupDescription", "GroupListing", "GroupMember", "GroupsAdmin", "MemberToRemove"]

NOT_THIS_TYPE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """`type` is classic, consumer, share or streams; empty, like `state`, where the broker does not tell."""

    group_id: str
    type: str
    state: str
    protocol_type: str
    coordinator: int

    @property
    def is_simple(self) -> bool:
        """Offsets are stored under this id, and nobody ever joined: consumers that assign by themselves."""
        return not self.protocol_type


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A static member by its `instance_id`, or a dynamic one by its `member_id`."""

    instance_id: str | None = None
    member_id: str = ""

    def __post_init__(self) -> None:
        if not self.instance_id and not self.member_id:
            raise InvalidRequest("a member is named by its instance_id or its member_id")

    def __str__(self) -> str:
        return self.instance_id or self.member_id


class GroupsAdmin(AdminPart):
    async def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout: float | None = None,
    ) -> list[GroupListing]:
        """All groups of the cluster by id, of these states (`Stable`, `Empty` ...) and types (`classic`, `consumer`)
        where some are named. Every broker is asked for its own; when one cannot answer, this fails: a list with holes
        would look like a full one."""
        call = self._call(timeout)
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

        async def ask(node_id: int, nodes: Sequence[int]) -> Outcomes[int, list[GroupListing]]:
            answer = await call.to(node_id, request, ListGroupsResponse)
            if answer.error_code:
                raise failure(answer.error_code, None, f"the groups of broker {node_id}")
            listed = [
                GroupListing(group.group_id, group.group_type.lower(), group.group_state, group.protocol_type, node_id)
                for group in answer.groups
            ]
            return {node_id: listed}

        async def attempt(nodes: Sequence[int]) -> Outcomes[int, list[GroupListing]]:
            return await call.by_broker({node_id: [node_id] for node_id in nodes}, ask)

        found = await call.settle(sorted(call.network.cluster.nodes), attempt)
        found.raise_for_errors()
        # A group that moves while its old and its new coordinator are asked is told twice.
        by_id = {group.group_id: group for groups in found.values() for group in groups}
        return [by_id[group_id] for group_id in sorted(by_id)]

    async def describe_groups(
        self, group_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """State, members and assignments, of groups of both protocols."""
        call = self._call(timeout)

        async def attempt(ids: Sequence[str]) -> Outcomes[str, GroupDescription]:
            return await call.by_coordinator(CoordinatorKind.GROUP, ids, lambda node, own: _describe(call, node, own))

        return await call.settle(_ids(group_ids), attempt)

    async def delete_groups(
        self, group_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> Results[str, None]:
        """Delete groups and their offsets; those that have members are refused with NON_EMPTY_GROUP."""
        call = self._call(timeout)

        async def ask(node_id: int, ids: Sequence[str]) -> Outcomes[str, None]:
            answer = await call.to(node_id, DeleteGroupsRequest(groups_names=list(ids)), DeleteGroupsResponse)
            return {
                group.group_id: failure(group.error_code, None, f"group {group.group_id}") if group.error_code else None
                for group in answer.results
            }

        async def attempt(ids: Sequence[str]) -> Outcomes[str, None]:
            return await call.by_coordinator(CoordinatorKind.GROUP, ids, ask)

        return await call.settle(_ids(group_ids), attempt)

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove | str] | None = None,
        *,
        reason: str = "removed by an administrator",
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Take members out of a group, all of them where none are named; a plain text is the instance id of a static
        member. The results are by instance id, or member id where there is none. Those that still run join again."""
        call = self._call(timeout)
        if members is None:
            described = (await self.describe_groups(group_id, timeout=timeout))[group_id]
            wanted = [MemberToRemove(member.instance_id, member.member_id) for member in described.members]
        else:
            wanted = [MemberToRemove(one) if isinstance(one, str) else one for one in members]
        by_name = {str(member): member for member in wanted}

        async def ask(names: Sequence[str]) -> Outcomes[str, None]:
            return await _remove(call, group_id, [by_name[name] for name in names], reason)

        return await call.settle(by_name, lambda names: call.in_pieces(names, ask))


def _ids(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


async def _describe(call: Call, node_id: int, ids: Sequence[str]) -> Outcomes[str, GroupDescription]:
    """Ask for groups of the new protocol first; those that are none are asked for as classic ones."""
    found = await _describe_consumer(call, node_id, ids)
    others = [key for key in ids if isinstance(one := found[key], BrokerError) and one.code in NOT_THIS_TYPE]
    if not others:
        return found
    request = DescribeGroupsRequest(groups=others)
    answer = await call.to(node_id, request, DescribeGroupsResponse)
    classic: dict[str, GroupDescription | OttlaError] = {}
    for group in answer.groups:
        code = group.error_code or (ErrorCode.GROUP_ID_NOT_FOUND if group.group_state == DEAD else ErrorCode.NONE)
        classic[group.group_id] = (
            failure(code, None, f"group {group.group_id}") if code else described_classic(group, broker_of(node_id))
        )
    return merged([found, classic])


async def _describe_consumer(call: Call, node_id: int, ids: Sequence[str]) -> dict[str, GroupDescription | OttlaError]:
    try:
        request = ConsumerGroupDescribeRequest(group_ids=list(ids))
        answer = await call.to(node_id, request, ConsumerGroupDescribeResponse)
    except UnsupportedByBroker as error:
        return dict.fromkeys(ids, error)
    found: dict[str, GroupDescription | OttlaError] = {
        group.group_id: failure(group.error_code, group.error_message, f"group {group.group_id}")
        if group.error_code
        else described_consumer(group, broker_of(node_id))
        for group in answer.groups
    }
    silent = {key: failure(ErrorCode.GROUP_ID_NOT_FOUND, None, f"group {key}") for key in ids if key not in found}
    return merged([found, silent])


async def _remove(call: Call, group_id: str, members: Sequence[MemberToRemove], reason: str) -> Outcomes[str, None]:
    request = LeaveGroupRequest(
        group_id=group_id,
        members=[
            MemberIdentity(
                # A static member is known by its instance; naming both would have to match.
                member_id="" if member.instance_id else member.member_id,
                group_instance_id=member.instance_id,
                reason=reason,
            )
            for member in members
        ],
    )

    async def ask(node_id: int, keys: Sequence[str]) -> Outcomes[str, LeaveGroupResponse]:
        answer = await call.to(node_id, request, LeaveGroupResponse)
        if answer.error_code:
            raise failure(answer.error_code, None, f"group {group_id}")
        return {group_id: answer}

    outcome = (await call.by_coordinator(CoordinatorKind.GROUP, [group_id], ask))[group_id]
    if isinstance(outcome, OttlaError):
        raise outcome
    return {
        (name := member.group_instance_id or member.member_id): failure(
            member.error_code, None, f"member {name} of group {group_id}"
        )
        if member.error_code
        else None
        for member in outcome.members
    }
