"""One run: a broker, attackers, a bystander who must not notice, and the verdict.

It fails when the broker dies, when it stops serving the bystander, when the bystander sees an error, when a handler
fails in a way that nobody foresaw, or when the broker's memory grows.
"""

import asyncio
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.compat.clients.bystander import Bystander
from tests.fuzz.attack import Attacker, Counts
from tests.fuzz.generator import RequestMaker
from tests.fuzz.replays import Replays
from tests.peers.ottla import OttlaBroker
from tests.unit.broker.api.questions import create_topic
from tests.wire_client import WireClient

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse

ATTACKERS = 6
CHECK_SECONDS = 2.0
MOST_TIMES_LONGER = 10
WARM_UP_SHARE = 0.2
MOST_LATE_IN_A_ROW = 6
MEBIBYTE = 1 << 20
GROWTH_LIMIT_BYTES = 64 * MEBIBYTE
BYSTANDERS_TOPIC = "bystander.that-nobody-else-names"
# The first ones are those that the guided search names.
COMPACTED = "tidy"
TOPICS = ("one", "two", COMPACTED, "fuzz-1", "fuzz-2", "fuzz-3")
PROPERTIES = {
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": "1000",
    "log.segment.bytes": "1048576",
}

Progress = Callable[[float, Counts, int], None]


class FuzzedBroker(OttlaBroker):
    """Says nothing of the connections it closes, only what went wrong inside of it."""

    def command(self) -> list[str]:
        return [*super().command(), "--log-level", "error"]


@dataclass(slots=True)
class Outcome:
    seed: int
    seconds: float
    counts: Counts = field(default_factory=Counts)
    memory_before_bytes: int = 0
    memory_after_bytes: int = 0
    served: int = 0
    latency_seconds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    replayed: int = 0
    late: int = 0
    late_in_a_row: int = 0
    problems: list[str] = field(default_factory=list)
    least_closed: int = 0

    @property
    def growth_bytes(self) -> int:
        return self.memory_after_bytes - self.memory_before_bytes

    def needs_more(self, elapsed_seconds: float) -> bool:
        return self.counts.closed_by_broker < self.least_closed and elapsed_seconds < self.seconds * MOST_TIMES_LONGER


def run_campaign(
    directory: Path,
    seed: int,
    seconds: float,
    progress: Progress | None = None,
    replays: Replays | None = None,
    least_closed: int = 0,
) -> Outcome:
    """Attack a broker; what `replays` has is sent as well, and what it gets meanwhile.

    On a busy machine it takes longer, within limits: until so many connections were closed by the broker.
    """
    outcome = Outcome(seed, seconds, least_closed=least_closed)
    with FuzzedBroker(directory, properties=PROPERTIES) as broker:
        try:
            asyncio.run(_attack(broker, outcome, replays, progress or (lambda elapsed, counts, memory_bytes: None)))
        except (AssertionError, OSError, TimeoutError) as error:
            outcome.problems.append(f"{type(error).__name__}: {error}")
        if not broker.running:
            outcome.problems.append(broker.describe("died"))
            return outcome
        outcome.memory_after_bytes = broker.resident_bytes()
        if outcome.growth_bytes > GROWTH_LIMIT_BYTES:
            outcome.problems.append(f"memory grew by {outcome.growth_bytes / MEBIBYTE:.0f} MiB")
        outcome.problems += _faults(broker.log_since_start())
        if broker.stop() != 0:
            outcome.problems.append(broker.describe("ended badly"))
    return outcome


async def _attack(broker: OttlaBroker, outcome: Outcome, replays: Replays | None, progress: Progress) -> None:
    assert broker.port is not None
    topics: dict[str, bytes] = {}
    served = await asyncio.to_thread(_prepare, broker.port, topics)
    bystander = Bystander(broker.bootstrap, BYSTANDERS_TOPIC)
    bystander.start()
    over = asyncio.Event()
    attackers = []
    for number in range(ATTACKERS):
        dice = random.Random(f"{outcome.seed}/{number}")
        attacker = Attacker(broker.port, dice, RequestMaker(dice, served, topics), outcome.counts, replays)
        attackers.append(asyncio.create_task(attacker.run(over)))
    try:
        await _watch(broker, bystander, outcome, attackers, topics, replays, progress)
    finally:
        over.set()
        outcome.served = bystander.served
        outcome.latency_seconds = bystander.latency_seconds()
        outcome.replayed = 0 if replays is None else replays.replayed
        await asyncio.gather(*attackers, return_exceptions=True)
        try:
            await asyncio.to_thread(bystander.check)
        finally:
            await asyncio.to_thread(bystander.finish)


async def _watch(
    broker: OttlaBroker,
    bystander: Bystander,
    outcome: Outcome,
    attackers: list[asyncio.Task[None]],
    topics: dict[str, bytes],
    replays: Replays | None,
    progress: Progress,
) -> None:
    assert broker.port is not None
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < outcome.seconds or outcome.needs_more(elapsed):
        await asyncio.to_thread(bystander.check)
        await _tend_patiently(broker.port, topics, outcome)
        if replays is not None:
            await asyncio.to_thread(replays.refresh)
        assert broker.running, "the broker died"
        for attacker in attackers:
            if attacker.done():
                attacker.result()
        memory_bytes = broker.resident_bytes()
        if elapsed >= outcome.seconds * WARM_UP_SHARE and not outcome.memory_before_bytes:
            outcome.memory_before_bytes = memory_bytes
        progress(elapsed, outcome.counts, memory_bytes)
        await asyncio.sleep(min(CHECK_SECONDS, outcome.seconds / 10))


async def _tend_patiently(port: int, topics: dict[str, bytes], outcome: Outcome) -> None:
    """What attackers asked of the controller is carried out although they left, so whoever tends the topics may have to
    wait behind it: that is counted. Several times in a row are a controller that does not answer any more."""
    try:
        await asyncio.to_thread(_tend, port, topics)
        outcome.late_in_a_row = 0
    except TimeoutError:
        outcome.late += 1
        outcome.late_in_a_row += 1
        assert outcome.late_in_a_row < MOST_LATE_IN_A_ROW, "the controller does not answer"


def _prepare(port: int, topics: dict[str, bytes]) -> list[ApiKey]:
    """What the broker serves."""
    with WireClient(port) as client:
        offered = client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0).api_keys
        create_topic(client, BYSTANDERS_TOPIC)
    _tend(port, topics)
    return [ApiKey(api.api_key) for api in offered]


def _tend(port: int, topics: dict[str, bytes]) -> None:
    """Create again what was deleted, and note the ids that the topics have now."""
    with WireClient(port) as client:
        wanted = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=2,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name="cleanup.policy", value="compact")] * (name == COMPACTED),
                )
                for name in TOPICS
            ],
            timeout_ms=10_000,
        )
        client.ask(wanted, CreateTopicsResponse)
        found = client.ask(MetadataRequest(topics=None), MetadataResponse).topics
    topics.update({topic.name: topic.topic_id for topic in found if topic.name in TOPICS})


def _faults(log: str) -> list[str]:
    """Tracebacks in the log, each kind once."""
    found = re.findall(r"Traceback \(most recent call last\):.*?\n(?=\S)(?! )[^\n]*", log, re.S)
    kinds = {fault.rsplit("\n", 1)[-1]: fault for fault in found}
    return [f"a handler failed:\n{fault}" for fault in kinds.values()]


def new_seed() -> int:
    return random.SystemRandom().randrange(1 << 32)


def describe(outcome: Outcome) -> str:
    return f"seed {outcome.seed}: " + "\n".join(outcome.problems or ["nothing was found"])
