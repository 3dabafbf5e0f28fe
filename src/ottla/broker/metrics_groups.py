"""Groups and their offsets, as metrics: what this broker coordinates."""

from collections import Counter
from collections.abc import Iterator

from ottla.broker.metrics_text import COUNTER, GAUGE, Family
from ottla.groups.coordinator import GroupCoordinator
from ottla.groups.group import CLASSIC, CONSUMER
from ottla.ledger.ledger import State


def _coordinator(name: str, kind: str, text: str, labels: tuple[str, ...] = ()) -> Family:
    return Family(f"kafka_server_group_coordinator_metrics_{name}", kind, text, labels)


OFFSETS = Family(
    "kafka_coordinator_group_groupmetadatamanager_numoffsets", GAUGE, "Offsets that groups have committed."
)
GROUPS = _coordinator("group_count", GAUGE, "Groups, by their kind.", ("protocol",))
CLASSIC_GROUPS = _coordinator("classic_group_count", GAUGE, "Classic groups, by their state.", ("state",))
CONSUMER_GROUPS = _coordinator("consumer_group_count", GAUGE, "Consumer groups, by their state.", ("state",))
COMMITS = _coordinator("offset_commit_total", COUNTER, "Offsets that were committed.")
EXPIRATIONS = _coordinator("offset_expiration_total", COUNTER, "Offsets that expired.")
DELETIONS = _coordinator("offset_deletion_total", COUNTER, "Offsets that clients deleted.")
REBALANCES = _coordinator(
    "group_completed_rebalance_total", COUNTER, "Rebalances of classic groups that were completed."
)
CONSUMER_REBALANCES = _coordinator(
    "consumer_group_rebalance_total",
    COUNTER,
    "New epochs of consumer groups, by members that came or changed and topics.",
)
PARTITIONS = _coordinator("num_partitions", GAUGE, "Partitions of __consumer_offsets led here, by state.", ("state",))
LOAD_TIME = _coordinator(
    "partition_load_time_max", GAUGE, "The longest that loading such a partition took since the start, in milliseconds."
)

FAMILIES = (
    OFFSETS,
    GROUPS,
    CLASSIC_GROUPS,
    CONSUMER_GROUPS,
    COMMITS,
    EXPIRATIONS,
    DELETIONS,
    REBALANCES,
    CONSUMER_REBALANCES,
    PARTITIONS,
    LOAD_TIME,
)
STATES = {
    CLASSIC: ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"),
    CONSUMER: ("Empty", "Assigning", "Reconciling", "Stable", "Dead"),
}


def group_lines(coordinator: GroupCoordinator) -> Iterator[str]:
    """Text in small pieces; an empty one where there was work but nothing to say."""
    offsets = 0
    partitions: Counter[State] = Counter()
    groups: Counter[tuple[str, str]] = Counter()
    for ledger in coordinator.topic:
        partitions[ledger.state] += 1
        if ledger.state is State.READY:
            offsets += ledger.machine.offsets.table.size
            groups.update((group.kind, group.state_name) for group in ledger.machine.all_groups())
        yield ""
    yield OFFSETS.head + OFFSETS.line(offsets)
    yield GROUPS.head
    for kind in STATES:
        yield GROUPS.line(sum(count for (each, _), count in groups.items() if each == kind), kind)
    for family, kind in ((CLASSIC_GROUPS, CLASSIC), (CONSUMER_GROUPS, CONSUMER)):
        yield family.head
        for state in STATES[kind]:
            yield family.line(groups[kind, state], state)
    counts = coordinator.context.counts
    yield COMMITS.head + COMMITS.line(counts.offset_commits)
    yield EXPIRATIONS.head + EXPIRATIONS.line(counts.offset_expirations)
    yield DELETIONS.head + DELETIONS.line(counts.offset_deletions)
    yield REBALANCES.head + REBALANCES.line(counts.completed_rebalances)
    yield CONSUMER_REBALANCES.head + CONSUMER_REBALANCES.line(counts.consumer_rebalances)
    yield PARTITIONS.head
    yield PARTITIONS.line(partitions[State.LOADING], "loading")
    yield PARTITIONS.line(partitions[State.READY], "active")
    yield LOAD_TIME.head + LOAD_TIME.line(coordinator.topic.longest_load_ms)
