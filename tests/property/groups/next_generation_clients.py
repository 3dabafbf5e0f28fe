"""Consumers of a consumer group as clients run them: they use what they were told to, until they have given it back."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.unit.groups.consumer.rig import GROUP, Rig

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

Partition = tuple[bytes, int]
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


@dataclass
class Consumer:
    """`uses` is what it reads from now; what is in it and not in `told` is to be given back by `give_back`."""

    rig: Rig
    member_id: str
    names: list[str]
    instance_id: str | None = None
    regex: str | None = None
    epoch: int = 0
    uses: set[Partition] = field(default_factory=set)
    told: set[Partition] = field(default_factory=set)
    is_unsure: bool = True

    @property
    def is_member(self) -> bool:
        group = self.rig.groups.get(GROUP)
        members = getattr(group, "members", {})
        return self.epoch > 0 and self.member_id in members and members[self.member_id].member_epoch >= 0

    def beat(self, *, is_answer_lost: bool = False) -> None:
        before = self.epoch
        try:
            response = self.rig.send(self._request())
        except KafkaError as error:
            if error.code in FENCED:
                self.start_over()
            elif error.code not in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNRELEASED_INSTANCE_ID):
                raise
            self.is_unsure = True
            return
        if is_answer_lost:
            self.is_unsure = True
            return
        assert response.member_epoch >= before, "a member's epoch went back"
        self._hear(response)

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member_id, member_epoch=self.epoch, instance_id=self.instance_id
        )
        if self.is_unsure or self.epoch == 0:
            request.rebalance_timeout_ms = 30_000
            request.subscribed_topic_names = list(self.names)
            request.subscribed_topic_regex = self.regex
        request.topic_partitions = [
            TopicPartitions(topic_id=topic_id, partitions=sorted(i for other, i in self.uses if other == topic_id))
            for topic_id in sorted({topic_id for topic_id, _ in self.uses})
        ]
        return request

    def _hear(self, response: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = response.member_epoch
        self.is_unsure = False
        if response.assignment is not None:
            self.told = {
                (topic.topic_id, index) for topic in response.assignment.topic_partitions for index in topic.partitions
            }
            self.uses |= self.told

    def give_back(self) -> None:
        self.uses &= self.told

    def start_over(self) -> None:
        self.epoch, self.is_unsure = 0, True
        self.uses, self.told = set(), set()

    def leave(self, epoch: int = -1) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )
        self.start_over()
        try:
            self.rig.send(request)
        except KafkaError as error:
            if error.code not in (*FENCED, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.FENCED_INSTANCE_ID):
                raise
