"""The coordinator of a classic group: joins are answered when all members are there or their time is over."""

import asyncio
from dataclasses import dataclass

from tests.property.client.membership.model import Coordinator

from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


@dataclass
class _Member:
    session_seconds: float
    rebalance_seconds: float
    metadata: bytes = b""
    joining: "asyncio.Future[JoinGroupResponse] | None" = None
    syncing: "asyncio.Future[SyncGroupResponse] | None" = None
    timer: asyncio.TimerHandle | None = None
    assignment: bytes = b""


class ClassicCoordinator(Coordinator):
    def __init__(self, counts: dict[str, int]) -> None:
        super().__init__(counts)
        self.generation = 0
        self.state = "stable"
        self.leader = ""
        self.protocol = ""
        self._members: dict[str, _Member] = {}
        self._gone: set[str] = set()
        self._ids = 0
        self._deadline: asyncio.TimerHandle | None = None

    def knows(self, member_id: str) -> bool:
        return member_id in self._members

    async def handle(self, request: Request) -> Response:
        match request:
            case JoinGroupRequest():
                return await self._join(request)
            case SyncGroupRequest():
                return await self._sync(request)
            case HeartbeatRequest():
                return HeartbeatResponse(error_code=self._heartbeat(request))
            case LeaveGroupRequest():
                for member in request.members:
                    self._remove(member.member_id)
                return LeaveGroupResponse()
            case _:
                raise AssertionError(request)

    async def _join(self, request: JoinGroupRequest) -> JoinGroupResponse:
        if self.is_away:
            return JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
        member_id = request.member_id
        if not member_id:
            self._ids += 1
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=f"m{self._ids:03}")
        if member_id not in self._members:
            if member_id in self._gone:
                return JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
            self._members[member_id] = _Member(request.session_timeout_ms / 1000, request.rebalance_timeout_ms / 1000)
        member = self._members[member_id]
        if member.timer is not None:
            member.timer.cancel()
        (protocol,) = request.protocols
        self.protocol = protocol.name
        member.metadata = protocol.metadata
        joining: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        member.joining = joining
        self._prepare()
        self._complete_if_all_joined()
        return await joining

    def _prepare(self) -> None:
        if self.state == "preparing":
            return
        self.state = "preparing"
        for member in self._members.values():
            self._answer_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        seconds = max(member.rebalance_seconds for member in self._members.values())
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._out_of_patience)

    def _out_of_patience(self) -> None:
        for member_id in [name for name, member in self._members.items() if member.joining is None]:
            self._forget(member_id)
        self._complete_if_all_joined()

    def _complete_if_all_joined(self) -> None:
        if self.state != "preparing" or any(member.joining is None for member in self._members.values()):
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self.generation += 1
        if not self._members:
            self.state = "stable"
            return
        self.state = "completing"
        if self.leader not in self._members:
            self.leader = min(self._members)
        everybody = [
            JoinGroupResponseMember(member_id=name, metadata=member.metadata) for name, member in self._members.items()
        ]
        for name, member in self._members.items():
            answer = JoinGroupResponse(
                generation_id=self.generation,
                protocol_type="consumer",
                protocol_name=self.protocol,
                leader=self.leader,
                member_id=name,
                members=everybody if name == self.leader else [],
            )
            if member.joining is not None and not member.joining.done():
                member.joining.set_result(answer)
            member.joining = None
            member.assignment = b""
            self._touch(name)

    async def _sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        code = self._check(request.member_id, request.generation_id)
        if code is ErrorCode.NONE and self.state == "preparing":
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if code is not ErrorCode.NONE:
            return SyncGroupResponse(error_code=code)
        member = self._members[request.member_id]
        self._touch(request.member_id)
        if self.state == "completing" and request.member_id == self.leader:
            for given in request.assignments:
                self._members[given.member_id].assignment = given.assignment
            self.state = "stable"
            for other in self._members.values():
                self._answer_sync(other, ErrorCode.NONE)
        if self.state == "stable":
            return SyncGroupResponse(assignment=member.assignment)
        member.syncing = asyncio.get_running_loop().create_future()
        return await member.syncing

    def _answer_sync(self, member: _Member, code: ErrorCode) -> None:
        if member.syncing is not None and not member.syncing.done():
            member.syncing.set_result(SyncGroupResponse(error_code=code, assignment=member.assignment))
        member.syncing = None

    def _heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        code = self._check(request.member_id, request.generation_id)
        if code is not ErrorCode.NONE:
            return code
        if self._members[request.member_id].joining is None:
            self._touch(request.member_id)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state == "preparing" else ErrorCode.NONE

    def _check(self, member_id: str, generation: int) -> ErrorCode:
        if self.is_away:
            return ErrorCode.NOT_COORDINATOR
        if member_id not in self._members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def _touch(self, member_id: str) -> None:
        member = self._members[member_id]
        if member.timer is not None:
            member.timer.cancel()
        loop = asyncio.get_running_loop()
        member.timer = loop.call_later(member.session_seconds, self._remove, member_id)

    def _forget(self, member_id: str) -> None:
        member = self._members.pop(member_id, None)
        if member is None:
            return
        self._gone.add(member_id)
        if member.timer is not None:
            member.timer.cancel()
        if member.joining is not None and not member.joining.done():
            member.joining.set_result(JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        self._answer_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)

    def _remove(self, member_id: str) -> None:
        if member_id not in self._members:
            return
        self._forget(member_id)
        if self._members:
            self._prepare()
        self._complete_if_all_joined()
