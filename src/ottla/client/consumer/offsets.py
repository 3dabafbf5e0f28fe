"""The part of the consumer's face that asks brokers about offsets and topics."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ottla.client.cluster import PartitionInfo
from ottla.client.consumer.arguments import ByPartition, Partition, Time, milliseconds, partition_of, partitions_of
from ottla.client.consumer.core import Core
from ottla.client.consumer.topics import know_topics
from ottla.client.consumer.values import OffsetSpec
from ottla.client.errors import BrokerUnavailable
from ottla.client.types import OffsetAndTimestamp, TopicPartition


class OffsetQueries(ABC):
    """Where logs begin and end, what times stand for, and where the consumer stands between them."""

    @property
    @abstractmethod
    def _core(self) -> Core: ...

    @abstractmethod
    def _api_seconds(self, timeout: float | None) -> float: ...

    async def beginning_offsets(
        self, partitions: Iterable[Partition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets of the first records that are still there."""
        return await self._edges(partitions, OffsetSpec.EARLIEST, timeout)

    async def end_offsets(
        self, partitions: Iterable[Partition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records will have; with `read_committed`, where an open transaction begins."""
        return await self._edges(partitions, OffsetSpec.LATEST, timeout)

    async def _edges(
        self, partitions: Iterable[Partition], edge: OffsetSpec, timeout: float | None
    ) -> dict[TopicPartition, int]:
        asked = partitions_of(partitions) or []
        await self._know(asked, timeout)
        found = await self._core.supply.lookup.find(dict.fromkeys(asked, int(edge)), self._api_seconds(timeout))
        return {partition: found[partition].offset for partition in asked}

    async def offsets_for_times(
        self, times: ByPartition[Time], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record from each time on; None where no record is that young."""
        asked = {partition_of(partition): milliseconds(time) for partition, time in times.items()}
        await self._know(asked, timeout)
        return await self._core.supply.lookup.for_times(asked, self._api_seconds(timeout))

    async def seek_to_time(
        self, time: Time, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> None:
        """Go to the first record from that time on, in these partitions (in all); to the end where there is none."""
        core = self._core
        states = {state.topic_partition: state for state in core.assignment.states(partitions_of(partitions))}
        for state in states.values():
            core.prefetch.drop(state)
            state.need_reset(milliseconds(time))
        core.supply.kick()
        for partition in states:
            await self.position(partition, timeout=timeout)

    def seek_to_beginning(self, partitions: Iterable[Partition] | None = None) -> None:
        """Go to the first record that is there when the next one is read."""
        self._seek_to(OffsetSpec.EARLIEST, partitions)

    def seek_to_end(self, partitions: Iterable[Partition] | None = None) -> None:
        """Go to the end as it is when the next record is read."""
        self._seek_to(OffsetSpec.LATEST, partitions)

    def _seek_to(self, edge: OffsetSpec, partitions: Iterable[Partition] | None) -> None:
        core = self._core
        for state in core.assignment.states(partitions_of(partitions)):
            core.prefetch.drop(state)
            state.need_reset(edge)
        core.supply.kick()

    async def position(self, partition: Partition, *, timeout: float | None = None) -> int:
        """The offset of the next record that will be handed out; waits while it has to be found out."""
        core = self._core
        wanted = partition_of(partition)
        deadline = core.clock.monotonic() + self._api_seconds(timeout)
        core.supply.kick()
        while True:
            state = core.assignment.state(wanted)
            if state.is_known:
                return state.next_offset
            await core.attend(is_done=False)
            left = deadline - core.clock.monotonic()
            if left <= 0:
                raise BrokerUnavailable(f"the position in {wanted} was not found out in time")
            await core.attention.wait_for_change(left)

    async def lag(
        self, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """How many offsets lie between the consumer and the end of each of these partitions (of all)."""
        core = self._core
        asked = [state.topic_partition for state in core.assignment.states(partitions_of(partitions))]
        ends = await self.end_offsets(asked, timeout=timeout)
        return {one: max(ends[one] - await self.position(one, timeout=timeout), 0) for one in sorted(asked)}

    async def partitions_for(self, topic: str, *, timeout: float | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic, with leaders and replicas."""
        core = self._core
        await know_topics(core.network, core.clock, [topic], core.clock.monotonic() + self._api_seconds(timeout))
        return core.network.cluster.topics[topic].partitions

    async def topics(self, *, timeout: float | None = None) -> list[str]:
        """The names of all topics that this consumer may see, sorted, without internal ones."""
        return await self._core.list_topics(self._api_seconds(timeout))

    async def _know(self, partitions: Iterable[TopicPartition], timeout: float | None) -> None:
        core = self._core
        names = sorted({partition.topic for partition in partitions})
        await know_topics(core.network, core.clock, names, core.clock.monotonic() + self._api_seconds(timeout))
