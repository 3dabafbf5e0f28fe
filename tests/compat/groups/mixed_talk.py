"""A talk about one group with members of both protocols. Ids that a broker made up are written down by name."""

from __future__ import annotations

import struct
from typing import Any

from tests.compat.groups.consumer_talk import REBALANCE_MS, ConsumerTalk
from tests.compat.groups.kept import plain

from ottla.groups.entries import GroupMetadataKey
from ottla.ledger.entries import Entry
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ottla.protocol.messages.consumer_protocol_assignment import TopicPartition as AssignedTopic
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

SESSION_MS = 60_000
VERSION = 3
_PREFIX = struct.Struct(">h").pack(VERSION)


class MixedTalk(ConsumerTalk):
    """Requests of classic members are by their names; generations are the last that they were told."""

    def __init__(self, port: int, group: str) -> None:
        super().__init__(port, group)
        self._ids_by_name: dict[str, str] = {}
        self._generations: dict[str, int] = {}

    def classic_join(self, name: str, *topics: str, owned: dict[str, list[int]] | None = None, **fields: Any) -> None:
        subscription = ConsumerProtocolSubscription(
            topics=list(topics),
            owned_partitions=[TopicPartition(topic=one, partitions=found) for one, found in (owned or {}).items()],
        )
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._ids_by_name.get(name, ""),
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=_PREFIX + subscription.encode(VERSION))],
        )
        for field, value in fields.items():
            setattr(request, field, value)
        answer = self.client.ask(request, JoinGroupResponse)
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self._ids_by_name[name] = answer.member_id
            self._generations[name] = answer.generation_id
        self.said.append(("join", name, self._known(plain(answer))))
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.classic_join(name, *topics, owned=owned, **fields)

    def classic_sync(self, name: str, assigned: dict[str, list[int]] | None = None, **fields: Any) -> None:
        assignment = ConsumerProtocolAssignment(
            assigned_partitions=[AssignedTopic(topic=one, partitions=found) for one, found in (assigned or {}).items()]
        )
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self._generations[name],
            member_id=self._ids_by_name[name],
            protocol_type="consumer",
            protocol_name="range",
        )
        if assigned is not None:
            data = _PREFIX + assignment.encode(VERSION)
            request.assignments = [SyncGroupRequestAssignment(member_id=request.member_id, assignment=data)]
        for field, value in fields.items():
            setattr(request, field, value)
        self.said.append(("sync", name, fields, plain(self.client.ask(request, SyncGroupResponse))))

    def classic_beat(self, name: str, **fields: Any) -> None:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self._generations[name], member_id=self._ids_by_name[name]
        )
        for field, value in fields.items():
            setattr(request, field, value)
        self.said.append(("beat", name, fields, plain(self.client.ask(request, HeartbeatResponse))))

    def classic_leave(self, *names: str) -> None:
        members = [MemberIdentity(member_id=self._ids_by_name.get(name, name)) for name in names]
        answer = self.client.ask(LeaveGroupRequest(group_id=self.group, members=members), LeaveGroupResponse)
        self.said.append(("leave", names, self._known(plain(answer))))

    def _known(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._known(found) for key, found in value.items()}
        if isinstance(value, list):
            return [self._known(found) for found in value]
        names = {member_id: name for name, member_id in self._ids_by_name.items()}
        return names.get(value, value) if isinstance(value, str) else value

    def describe(self, version: int = 1) -> None:
        place = len(self.said)
        super().describe(version)
        self.said[place:] = [self._known(one) for one in self.said[place:]]

    def _kept(self, entry: Entry) -> Any:
        return tuple(self._known(one) if isinstance(one, dict) else one for one in super()._kept(entry))

    def _is_ours(self, entry: Entry) -> bool:
        return super()._is_ours(entry) or (isinstance(entry.key, GroupMetadataKey) and entry.key.group == self.group)
