"""A ledger: decisions in order, answers when what they say is safe, and the same state after a load."""

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.replication.rig import Rig, image, turns

from ottla.ledger import Decision, Entry, Ledger, LedgerKey, LedgerValue, RecordTypes, Replayed, partition_for
from ottla.ledger.ledger import State
from ottla.log.config import LogConfig
from ottla.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from ottla.protocol.schema import Int32, field
from ottla.records import Record, build_batch
from ottla.replication.partition import Partition
from ottla.runtime.promise import Promise


class CountKey(LedgerKey, record_type=3):
    name: str = field("0")


class CountValue(LedgerValue, of=CountKey, versions=(0, 1), flexible=1):
    number: Int32 = field("0+")


TYPES = RecordTypes([CountKey])


class Counters:
    """Numbers by name; a test decides that one of them grows."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.offsets: list[int] = []
        self.told: KafkaError | None = None
        self.is_loaded = False

    def replay(self, record: Replayed) -> None:
        key, value = record.entry.key, record.entry.value
        assert isinstance(key, CountKey)
        self.offsets.append(record.offset)
        if value is None:
            self.numbers.pop(key.name, None)
        else:
            assert isinstance(value, CountValue)
            self.numbers[key.name] = value.number

    def replay_end(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        raise AssertionError("there are no transactions here")

    def loaded(self) -> None:
        self.is_loaded = True

    def unload(self, error: KafkaError) -> None:
        self.told = error

    def grow(self, name: str) -> Decision[int]:
        number = self.numbers.get(name, 0) + 1
        return Decision(number, [entry(name, number)])


def entry(name: str, number: int | None) -> Entry:
    return Entry(CountKey(name=name), None if number is None else CountValue(number=number), 1)


async def ledger_on(partition: Partition, rig: Rig) -> Ledger[Counters]:
    ledger: Ledger[Counters] = Ledger(partition, TYPES, rig.clock, rig.executor)
    ledger.machine = Counters()
    await ledger.load()
    return ledger


async def new_ledger(rig: Rig, config: LogConfig | None = None) -> Ledger[Counters]:
    return await ledger_on(await rig.partition(config or LogConfig(cleanup_policy=("compact",))), rig)


def grow(ledger: Ledger[Counters], name: str) -> Promise[int]:
    return ledger.write(lambda: ledger.machine.grow(name))


def code_of(promise: Promise[int]) -> ErrorCode:
    error = promise.exception()
    assert isinstance(error, KafkaError)
    return error.code


def test_each_decision_sees_the_one_before() -> None:
    async def scenario() -> None:
        ledger = await new_ledger(Rig())
        assert [grow(ledger, "a").result() for _ in range(3)] == [1, 2, 3]
        assert ledger.read(lambda: ledger.machine.numbers["a"]).result() == 3
        assert ledger.machine.offsets == [0, 1, 2]

    asyncio.run(scenario())


def test_a_load_replays_to_the_same_state() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(rig)
        for name in "abcab":
            grow(ledger, name)
        ledger.write(lambda: Decision(None, [entry("c", None), entry("d", 7)]))
        again = await ledger_on(ledger.partition, rig)
        assert again.machine.numbers == ledger.machine.numbers == {"a": 2, "b": 2, "d": 7}
        assert again.machine.offsets == ledger.machine.offsets
        assert again.machine.is_loaded

    asyncio.run(scenario())


def test_a_load_of_many_segments_and_pieces_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("ottla.ledger.ledger.LOAD_BYTES", 300)
        rig = Rig()
        ledger = await new_ledger(rig, LogConfig(cleanup_policy=("compact",), segment_bytes=500))
        promises = [grow(ledger, "abc"[number % 3]) for number in range(60)]
        await turns(200)
        assert all(promise.done() for promise in promises)
        again = await ledger_on(ledger.partition, rig)
        assert again.machine.numbers == {"a": 20, "b": 20, "c": 20}

    asyncio.run(scenario())


def test_a_long_load_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("ottla.ledger.ledger.REPLAYED_AT_ONCE", 10)
        rig = Rig()
        ledger = await new_ledger(rig)
        for _ in range(100):
            grow(ledger, "a")
        seen: list[int] = []
        again: Ledger[Counters] = Ledger(ledger.partition, TYPES, rig.clock, rig.executor)
        again.machine = Counters()

        async def others() -> None:
            while again.state is State.LOADING:
                seen.append(len(again.machine.offsets))
                await asyncio.sleep(0)

        await asyncio.gather(again.load(), others())
        assert again.machine.numbers == {"a": 100}
        assert set(range(10, 100, 10)) <= set(seen)

    asyncio.run(scenario())


def test_a_load_that_is_not_wanted_any_more_ends() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(rig)
        for _ in range(1_000):
            grow(ledger, "a")
        again: Ledger[Counters] = Ledger(ledger.partition, TYPES, rig.clock, rig.executor)
        again.machine = Counters()
        loading = asyncio.ensure_future(again.load())
        await turns(3)
        again.unload()
        await loading
        assert again.state is State.GONE
        assert not again.machine.is_loaded
        assert len(again.machine.offsets) < 1_000

    asyncio.run(scenario())


def test_decisions_wait_for_an_append_that_waits() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(rig, LogConfig(cleanup_policy=("compact",), segment_bytes=200))
        assert [grow(ledger, "a").done() for _ in range(2)] == [True, True]
        rig.executor.holds = True
        waiting = [grow(ledger, "a") for _ in range(3)]
        await turns()
        assert not any(promise.done() for promise in waiting)
        rig.executor.release()
        await turns(100)
        assert [promise.result() for promise in waiting] == [3, 4, 5]

    asyncio.run(scenario())


def test_an_answer_waits_until_its_entries_are_committed() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(rig, LogConfig(cleanup_policy=("compact",), ottla_flush_before_ack=True))
        rig.executor.holds = True
        first = grow(ledger, "a")
        seen = ledger.read(lambda: dict(ledger.machine.numbers))
        second = grow(ledger, "a")
        await turns()
        assert not any(promise.done() for promise in (first, seen, second))
        rig.executor.release()
        await turns()
        assert (first.result(), seen.result(), second.result()) == (1, {"a": 1}, 2)

    asyncio.run(scenario())


def test_what_cannot_be_appended_has_not_happened() -> None:
    async def scenario() -> None:
        ledger = await new_ledger(Rig(), LogConfig(cleanup_policy=("compact",), max_message_bytes=120))
        heard: list[KafkaError | None] = []

        def too_much() -> Decision[int]:
            return Decision(1, [entry("x" * 200, 1)], written=heard.append)

        assert code_of(ledger.write(too_much)) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert [error.code for error in heard if error] == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert ledger.machine.numbers == {}
        assert grow(ledger, "a").result() == 1

    asyncio.run(scenario())


def test_what_may_be_split_is_written_in_as_many_batches_as_it_takes() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(
            rig, LogConfig(cleanup_policy=("compact",), max_message_bytes=1000, segment_bytes=2000)
        )
        names = [f"name-{number}" for number in range(200)]
        heard: list[KafkaError | None] = []

        def too_much(*, is_atomic: bool) -> Decision[int]:
            return Decision(1, [entry(name, 7) for name in names], written=heard.append, is_atomic=is_atomic)

        assert code_of(ledger.write(lambda: too_much(is_atomic=True))) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert ledger.machine.numbers == {}
        heard.clear()
        rig.executor.holds = True
        split, after = ledger.write(lambda: too_much(is_atomic=False)), grow(ledger, "name-3")
        await turns()
        assert not split.done()
        assert not after.done()
        rig.executor.release()
        await turns(100)
        assert (split.result(), after.result(), heard) == (1, 8, [None])
        loaded = await ledger_on(ledger.partition, rig)
        assert loaded.machine.numbers == ledger.machine.numbers == dict.fromkeys(names, 7) | {"name-3": 8}

    asyncio.run(scenario())


def test_what_may_be_split_still_ends_with_one_entry_that_is_too_large() -> None:
    async def scenario() -> None:
        ledger = await new_ledger(Rig(), LogConfig(cleanup_policy=("compact",), max_message_bytes=200))
        entries = [entry("a", 1), entry("x" * 300, 2), entry("b", 3)]
        refused = ledger.write(lambda: Decision(1, entries, is_atomic=False))
        assert code_of(refused) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert ledger.machine.numbers == {"a": 1}

    asyncio.run(scenario())


def test_too_few_replicas_refuse_and_change_nothing() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(rig, LogConfig(cleanup_policy=("compact",), min_insync_replicas=2))
        assert code_of(grow(ledger, "a")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert ledger.machine.numbers == {}

    asyncio.run(scenario())


def test_an_error_of_a_decision_is_the_answer() -> None:
    async def scenario() -> None:
        ledger = await new_ledger(Rig())

        def refuse() -> Decision[int]:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such topic")

        assert code_of(ledger.write(refuse)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(scenario())


def test_one_that_is_not_ready_says_why() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger: Ledger[Counters] = Ledger(await rig.partition(), TYPES, rig.clock, rig.executor)
        ledger.machine = Counters()
        assert code_of(grow(ledger, "a")) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await ledger.load()
        ledger.unload()
        assert code_of(grow(ledger, "a")) == ErrorCode.NOT_COORDINATOR
        assert ledger.machine.told is not None

    asyncio.run(scenario())


def test_leaving_refuses_what_waits_for_an_append() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(rig, LogConfig(cleanup_policy=("compact",), segment_bytes=200))
        for _ in range(2):
            grow(ledger, "a")
        rig.executor.holds = True
        waiting = [grow(ledger, "a") for _ in range(2)]
        ledger.partition.apply(image(leader=2, epoch=1))
        ledger.unload()
        rig.executor.release()
        await turns(100)
        assert [code_of(promise) for promise in waiting] == [ErrorCode.NOT_COORDINATOR] * 2
        assert ledger.machine.numbers == {"a": 2}

    asyncio.run(scenario())


def test_a_timer_decides_once_and_may_be_called_off() -> None:
    async def scenario() -> None:
        ledger = await new_ledger(Rig())
        rung = asyncio.Event()

        def ring(name: str) -> Callable[[], Decision[None]]:
            def decide() -> Decision[None]:
                rung.set()
                return Decision(None, [entry(name, 1)])

            return decide

        ledger.schedule("replaced", 0, ring("never"))
        ledger.schedule("replaced", 0, ring("a"))
        ledger.schedule("called off", 0, ring("never"))
        ledger.cancel("called off")
        assert ledger.is_scheduled("replaced")
        assert not ledger.is_scheduled("called off")
        await rung.wait()
        assert ledger.machine.numbers == {"a": 1}
        assert not ledger.is_scheduled("replaced")

    asyncio.run(scenario())


def test_a_timer_that_could_not_write_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("ottla.ledger.ledger.RETRY_MS", 0)
        ledger = await new_ledger(Rig(), LogConfig(cleanup_policy=("compact",), max_message_bytes=120))
        done = asyncio.Event()
        sizes = [200, 200, 1]

        def decide() -> Decision[None]:
            if len(sizes) == 1:
                done.set()
            return Decision(None, [entry("x" * sizes.pop(0), 1)])

        ledger.schedule("late", 0, decide)
        await done.wait()
        assert ledger.machine.numbers == {"x": 1}

    asyncio.run(scenario())


def test_records_that_mean_nothing_are_passed_over() -> None:
    async def scenario() -> None:
        rig = Rig()
        ledger = await new_ledger(rig)
        grow(ledger, "a")
        for key in (b"\x00\x63newer", b"\x00\x03\x7f", b"?"):
            strange = build_batch([Record(timestamp=rig.clock.now_ms(), key=key, value=b"\x00\x00")])
            ledger.partition.append_own(memoryview(bytearray(strange)))
        grow(ledger, "a")
        again = await ledger_on(ledger.partition, rig)
        assert again.machine.numbers == {"a": 2}
        assert again.state is State.READY

    asyncio.run(scenario())


def test_entries_have_kafkas_form() -> None:
    assert entry("ab", 5).encode() == (b"\x00\x03\x00\x02ab", b"\x00\x01\x00\x00\x00\x05\x00")
    assert entry("ab", None).encode() == (b"\x00\x03\x00\x02ab", None)
    key, value = entry("ab", 5).encode()
    assert TYPES.decode(key, value) == entry("ab", 5)
    with pytest.raises(MalformedMessage):
        TYPES.decode(None, value)


@pytest.mark.parametrize(
    ("key", "expected"),
    [("", 0), ("a", 47), ("console-consumer-1", 24), ("polygenelubricants", 0), ("größe", 7), ("😀", 49)],
)
def test_the_partition_of_a_key_is_the_one_that_java_finds(key: str, expected: int) -> None:
    assert partition_for(key, 50) == expected
