"""A consumer that speaks the classic protocol, one request at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.unit.groups.consumer.rig import GROUP, Partitions, Rig, topic_id

from ottla.groups.classic import Client
from ottla.groups.consumer.embedded import read_assignment, write_assignment
from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.runtime.promise import Promise

CLIENT = Client("classic", "/127.0.0.1", 9)


@dataclass
class ClassicConsumer:
    rig: Rig
    names: list[str]
    instance_id: str | None = None
    protocol: str = "cooperative-sticky"
    member_id: str = ""
    generation: int = -1
    owned: Partitions = field(default_factory=dict)

    def subscription(self) -> bytes:
        owned = [TopicPartition(topic=name, partitions=sorted(found)) for name, found in sorted(self.owned.items())]
        message = ConsumerProtocolSubscription(topics=self.names, owned_partitions=owned, generation_id=self.generation)
        return b"\x00\x03" + message.encode(3)

    def ask_to_join(self) -> Promise[JoinGroupResponse]:
        """Twice if an id comes first."""
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self.protocol, metadata=self.subscription())],
        )
        promise = self.rig.write(lambda: self.rig.classic.join(CLIENT, request))
        if promise.done() and promise.result().error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = promise.result().member_id
            return self.ask_to_join()
        return promise

    def hear(self, promise: Promise[JoinGroupResponse]) -> JoinGroupResponse:
        response = promise.result()
        assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code)
        self.member_id, self.generation = response.member_id, response.generation_id
        return response

    def join(self) -> JoinGroupResponse:
        return self.hear(self.ask_to_join())

    def sync(self, assignments: dict[str, Partitions] | None = None) -> ErrorCode:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=write_assignment(
                        {topic_id(name): indexes for name, indexes in partitions.items()}, 3, self.rig.image
                    ),
                )
                for member_id, partitions in (assignments or {}).items()
            ],
        )
        try:
            response = self.rig.write(lambda: self.rig.classic.sync(CLIENT, request)).result()
        except KafkaError as error:
            return error.code
        if response.error_code == ErrorCode.NONE:
            assignment = read_assignment(response.assignment)
            self.owned = {topic.topic: set(topic.partitions) for topic in assignment.assigned_partitions}
        return ErrorCode(response.error_code)

    def beat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        try:
            return ErrorCode(self.rig.write(lambda: self.rig.classic.heartbeat(CLIENT, request)).error_code)
        except KafkaError as error:
            return error.code

    def leave(self) -> ErrorCode:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        response = self.rig.write(lambda: self.rig.classic.leave(CLIENT, request))
        return ErrorCode(response.error_code or response.members[0].error_code)


def stable_group(rig: Rig, *consumers: ClassicConsumer) -> None:
    """All of them in one classic group; the partitions of topic `a` are spread among them in turn."""
    promises = [consumer.ask_to_join() for consumer in consumers]
    rig.pass_time(10_000)
    for consumer, promise in zip(consumers, promises, strict=True):
        consumer.hear(promise)
    count = len(rig.image.topics["a"].partitions)
    spread = {
        consumer.member_id: {"a": set(range(number, count, len(consumers)))}
        for number, consumer in enumerate(consumers)
    }
    leader = next(one for one, promise in zip(consumers, promises, strict=True) if promise.result().members)
    assert leader.sync(spread) is ErrorCode.NONE
    for consumer in consumers:
        assert consumer.sync() is ErrorCode.NONE
