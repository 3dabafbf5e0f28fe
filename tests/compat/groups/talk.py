"""A talk with one broker about one classic group, written down so that two brokers' can be compared.

Each client has a connection of its own. Ids that a broker made up are written down by the name of the client that got
them.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from typing import Any

from tests.compat.groups.kept import FETCH_VERSION, fetch_request, kept_of, plain
from tests.peers.ports import LOOPBACK, receive_exactly

from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import decode_response, encode_request
from ottla.protocol.message import Request, Response
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PATIENCE_SECONDS = 60.0
LONG_MS = 60_000
RETRY_SECONDS = 0.02
DESCRIBE_VERSION = 5
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Talk:
    """Members are called by the names of their clients, and by any text if no client has that name."""

    def __init__(self, port: int, group: str) -> None:
        self._said: list[Any] = []
        self.group = group
        self._port = port
        self._connections: dict[str, socket.socket] = {}
        self._asked: dict[str, tuple[type[Request], int]] = {}
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def said(self) -> list[Any]:
        """All that was asked and answered."""
        return [self._known(line) for line in self._said]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    # One request

    def send(self, name: str, request: Request, version: int) -> None:
        connection = self._connections.get(name)
        if connection is None:
            connection = socket.create_connection((LOOPBACK, self._port), timeout=PATIENCE_SECONDS)
            self._connections[name] = connection
        connection.sendall(encode_request(request, version, 1, f"client {name}"))
        self._asked[name] = (type(request), version)

    def hear(self, name: str) -> Response:
        """The answer to what a client asked last, written down."""
        asked, version = self._asked.pop(name)
        connection = self._connections[name]
        (length,) = struct.unpack(">i", receive_exactly(connection, 4))
        answer = decode_response(asked, version, receive_exactly(connection, length))[1]
        if isinstance(answer, JoinGroupResponse) and answer.member_id and answer.member_id not in self._names:
            self._know(name, answer.member_id)
        self._said.append({"client": name, "asks": asked.__name__, "version": version, "is told": plain(answer)})
        return answer

    def ask(self, name: str, request: Request, version: int) -> Response:
        self.send(name, request, version)
        return self.hear(name)

    def hang_up(self, name: str) -> None:
        self._connections.pop(name).close()
        self._asked.pop(name, None)

    @staticmethod
    def wait(milliseconds: int) -> None:
        """Let the brokers' clocks run."""
        time.sleep(milliseconds / 1000)

    def forget_last(self) -> None:
        """The last answer depends on what the time is, and is not written down."""
        self._said.pop()

    def _know(self, name: str, member_id: str) -> None:
        number = sum(known.startswith(name) for known in self._names.values())
        self._ids[name] = member_id
        self._names[member_id] = f"{name}{'+' * number}"

    def _known(self, value: Any) -> Any:
        """Made-up ids by their names, and lists of members in the order of those."""
        if isinstance(value, dict):
            return {key: self._known(found) for key, found in value.items()}
        if isinstance(value, list | tuple):
            return sorted((self._known(found) for found in value), key=repr)
        if isinstance(value, str):
            return f"<{self._names[value]}: {_UUID.sub('...', value)}>" if value in self._names else value
        return value

    def id_of(self, name: str) -> str:
        return self._ids.get(name, name)

    def write_down_records(self) -> None:
        """What the broker keeps of the group by now."""
        self.send("reader", fetch_request(), FETCH_VERSION)
        answer = self.hear("reader")
        assert isinstance(answer, FetchResponse)
        self._said[-1] = {f"record {number}": kept for number, kept in enumerate(kept_of(self.group, answer))}

    # The requests of a group

    def find(self) -> None:
        """Wait until the broker is ready to coordinate the group."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            self.send("nobody", FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group]), 4)
            found = self.hear("nobody")
            assert isinstance(found, FindCoordinatorResponse)
            if found.coordinators[0].error_code == ErrorCode.NONE:
                beat = HeartbeatRequest(group_id=self.group, generation_id=1, member_id="nobody")
                answer = self.ask("nobody", beat, 4)
                if getattr(answer, "error_code", 0) == ErrorCode.UNKNOWN_MEMBER_ID:
                    break
            time.sleep(RETRY_SECONDS)
        self._said.clear()

    def begin_join(
        self,
        name: str,
        member: str = "",
        *,
        instance: str | None = None,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = LONG_MS,
        rebalance_ms: int = LONG_MS,
        version: int = 9,
        group: str | None = None,
        waits: bool = True,
    ) -> None:
        """Ask to be let in. With `waits` that is not answered at once, and what is said next is said after it."""
        offered = {"range": b"r"} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=self.group if group is None else group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=self.id_of(member) if member else "",
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=known, metadata=data) for known, data in offered.items()],
        )
        self.send(name, request, version)
        while waits and not self._has_joined(name, instance):
            time.sleep(RETRY_SECONDS)

    def _has_joined(self, name: str, instance: str | None) -> bool:
        """Whether the group shows that the broker has seen a member's request."""
        self.send("watcher", DescribeGroupsRequest(groups=[self.group]), DESCRIBE_VERSION)
        answer = self.hear("watcher")
        self.forget_last()
        assert isinstance(answer, DescribeGroupsResponse)
        [group] = answer.groups
        return group.group_state in ("PreparingRebalance", "CompletingRebalance") and any(
            member.client_id == f"client {name}" or (instance is not None and member.group_instance_id == instance)
            for member in group.members
        )

    def join(self, name: str, member: str = "", **options: Any) -> JoinGroupResponse:
        self.begin_join(name, member, waits=False, **options)
        answer = self.hear(name)
        assert isinstance(answer, JoinGroupResponse)
        return answer

    def enter(self, name: str, **options: Any) -> None:
        """A new dynamic member: it gets its id and waits for the others."""
        self.join(name, **options)
        self.begin_join(name, name, **options)

    def begin_sync(
        self,
        name: str,
        generation: int,
        parts: dict[str, bytes] | None = None,
        *,
        member: str | None = None,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = "range",
        version: int = 5,
        group: str | None = None,
    ) -> None:
        request = SyncGroupRequest(
            group_id=self.group if group is None else group,
            generation_id=generation,
            member_id=self.id_of(name if member is None else member),
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=self.id_of(who), assignment=part)
                for who, part in (parts or {}).items()
            ],
        )
        self.send(name, request, version)

    def sync(self, name: str, generation: int, parts: dict[str, bytes] | None = None, **options: Any) -> None:
        self.begin_sync(name, generation, parts, **options)
        self.hear(name)

    def beat(
        self,
        name: str,
        generation: int,
        *,
        member: str | None = None,
        instance: str | None = None,
        version: int = 4,
        group: str | None = None,
    ) -> None:
        request = HeartbeatRequest(
            group_id=self.group if group is None else group,
            generation_id=generation,
            member_id=self.id_of(name if member is None else member),
            group_instance_id=instance,
        )
        self.ask(name, request, version)

    def leave(self, name: str, *members: tuple[str, str | None], version: int = 5, group: str | None = None) -> None:
        request = LeaveGroupRequest(group_id=self.group if group is None else group)
        if version >= 3:
            request.members = [
                MemberIdentity(member_id=self.id_of(who) if who else "", group_instance_id=instance)
                for who, instance in members
            ]
        else:
            request.member_id = self.id_of(members[0][0])
        self.ask(name, request, version)

    # Whole rounds

    def pair(self, **options: Any) -> None:
        """Members A, who leads, and B of a stable group."""
        self.enter("A", **options)
        self.enter("B", **options)
        self.hear("A")
        self.hear("B")
        self.begin_sync("B", 1)
        self.sync("A", 1, {"A": b"part a", "B": b"part b"})
        self.hear("B")

    def static_pair(self, **options: Any) -> None:
        """The same as instances a and b."""
        self.begin_join("A", instance="a", **options)
        self.begin_join("B", instance="b", **options)
        self.hear("A")
        self.hear("B")
        self.begin_sync("B", 1, instance="b")
        self.sync("A", 1, {"A": b"part a", "B": b"part b"}, instance="a")
        self.hear("B")
