"""Whatever brokers and connections do, an idempotent producer loses nothing that was acknowledged, writes nothing twice
and keeps the order of every partition."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.property.client.producer_world import NODES, World
from tests.property.examples import examples

from ottla.protocol.errors import ErrorCode

PARTITIONS = (0, 1)
partitions = st.sampled_from(PARTITIONS)
nodes = st.sampled_from(NODES)
refusals = st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR])


class _Producer(RuleBasedStateMachine):
    all_arrive = True

    def new_world(self, in_flight: int) -> World:
        return World(batch_size=120, max_in_flight=in_flight, linger_ms=5)

    @initialize(in_flight=st.integers(1, 5), largest=st.sampled_from([2, 1 << 30]))
    def begin(self, in_flight: int, largest: int) -> None:
        self.world = self.new_world(in_flight)
        self.world.largest_count = largest

    @rule(partition=partitions, count=st.integers(1, 12))
    def send(self, partition: int, count: int) -> None:
        for _ in range(count):
            self.world.send(partition)

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.2, 3.0]))
    def wait(self, seconds: float) -> None:
        self.world.clock.now += seconds
        self.world.turn()

    @rule()
    def turn(self) -> None:
        self.world.turn()

    @rule(node=nodes, count=st.integers(1, 3))
    def process(self, node: int, count: int) -> None:
        for _ in range(count):
            self.world.process(node)

    @rule(node=nodes, count=st.integers(1, 3))
    def answer(self, node: int, count: int) -> None:
        for _ in range(count):
            self.world.answer(node)
            self.world.turn()

    @rule(node=nodes, code=refusals)
    def refuse(self, node: int, code: ErrorCode) -> None:
        self.world.process(node, code)

    @rule(node=nodes)
    def append_and_refuse(self, node: int) -> None:
        self.world.process(node, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, after_append=True)

    @rule(node=nodes, carried_out=st.integers(0, 4))
    def cut(self, node: int, carried_out: int) -> None:
        self.world.cut(node, carried_out)

    @rule(partition=partitions, is_known=st.booleans())
    def move_leader(self, partition: int, is_known: bool) -> None:
        self.world.move_leader(partition, is_known=is_known)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.check(all_arrive=self.all_arrive)
            self.world.settle()
            self.world.check(all_arrive=self.all_arrive)
            assert all(delivery.done() for _, _, delivery in self.world.sent)
            assert self.world.appender.available_bytes == self.world.config.buffer_memory
            assert self.world.appender.waiting == 0


class PatientProducer(_Producer):
    """Time enough for everything: all records arrive."""

    def new_world(self, in_flight: int) -> World:
        return World(batch_size=120, max_in_flight=in_flight, linger_ms=5, delivery_timeout_ms=10_000_000)


class HastyProducer(_Producer):
    """Records that take too long are given up: what may have been written is not written again."""

    all_arrive = False

    def new_world(self, in_flight: int) -> World:
        return World(
            batch_size=120, max_in_flight=in_flight, linger_ms=5, request_timeout_ms=1000, delivery_timeout_ms=2000
        )

    @rule(node=nodes)
    def refuse_for_good(self, node: int) -> None:
        self.world.process(node, ErrorCode.INVALID_RECORD)


PatientProducer.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
HastyProducer.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestPatientProducer = PatientProducer.TestCase
TestHastyProducer = HastyProducer.TestCase
