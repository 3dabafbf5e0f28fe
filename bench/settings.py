"""How long and how much: the same for both brokers, always."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Settings:
    """The size of one whole run of the suite.

    `warm_rounds` come before the counted ones and are thrown away: a JVM is slow until it has compiled what it runs,
    and that is not what the rows of a table should compare. `produce_limit_bytes` ends a produce measurement early,
    so that the faster broker does not run into the kernel's limit on dirty pages while the slower one never gets
    there; four times as much memory is made ready before (see `bench.memory`).
    """

    rounds: int = 3
    warm_rounds: int = 1
    warm_seconds: float = 0.4
    produce_seconds: float = 2.5
    produce_limit_bytes: int = GIB
    fetch_seconds: float = 2.0
    fetch_log_bytes: int = 512 * MIB
    client_records: int = 1_000_000
    client_consumed_records: int = 1_000_000
    latency_seconds: float = 5.0
    latency_rate: int = 1000
    java_records: int = 3_000_000
    depth_seconds: float = 2.0
    depth_small_bytes: int = 10 * MIB
    depth_large_bytes: int = 10 * GIB
    limit_seconds: float = 1.0
    scale_partitions: tuple[int, ...] = (1, 100, 1000, 10_000)
    scale_seconds: float = 2.0
    scale_fill_bytes: int = 320 * MIB
    scale_connections: int = 1000
    compaction_log_bytes: int = 768 * MIB
    compaction_keys: int = 1_000_000
    compaction_rate: int = 1000
    compaction_quiet_seconds: float = 3.0
    # the slowest hundredth of some thousand answers says little of one run: what else the host does decides it
    compaction_pairs: int = 3
    group_sizes: tuple[int, ...] = (2, 20, 100)
    group_changes: int = 3
    group_count: int = 10_000
    commit_seconds: float = 3.0
    consumer_bytes: int = 384 * MIB
    transaction_seconds: float = 3.0
    library_records: int = 1_000_000
    library_async_records: int = 200_000
    library_table_records: int = 5_000_000
    library_drain_bytes: int = 5 * GIB
    # of latencies, for the same reason as above
    library_pairs: int = 3
    spark_records: int = 3_000_000
    spark_partitions: tuple[int, ...] = (1, 50)
    spark_drained_partitions: tuple[int, ...] = (1, 6)
    spark_record_bytes: tuple[int, ...] = (1_000, 10_000)
    spark_bytes: int = 600_000_000
    # events of Campaign beside Apache Kafka; of each pipeline alone, and of its micro-batches
    pipeline_events: int = 500_000
    pipeline_small_events: int = 60_000
    pipeline_batch_events: int = 20_000
    launch_rate: int = 200
    # new events that a pipeline gets at a time, and how often
    pipeline_few_events: int = 50
    pipeline_few_warm: int = 25
    pipeline_few_rounds: int = 10
    demo_seconds: int = 600
    demo_settle_seconds: int = 60
    demo_rate: int = 1000
    lake_records: int = 10_000_000


def full(rounds: int | None = None) -> Settings:
    """What the published figures come from."""
    return Settings(rounds=rounds or 3)


def quick(rounds: int | None = None) -> Settings:
    """A look at the whole suite in about two minutes; too short to be quoted."""
    return Settings(
        rounds=rounds or 1,
        produce_seconds=1.0,
        produce_limit_bytes=768 * MIB,
        fetch_seconds=0.7,
        fetch_log_bytes=128 * MIB,
        client_records=300_000,
        client_consumed_records=300_000,
        latency_seconds=2.0,
        java_records=500_000,
        depth_seconds=0.7,
        depth_large_bytes=GIB,
        limit_seconds=0.5,
        scale_seconds=0.7,
        scale_partitions=(1, 100, 1000),
        scale_connections=200,
        compaction_log_bytes=256 * MIB,
        compaction_keys=300_000,
        compaction_quiet_seconds=1.5,
        compaction_pairs=1,
        group_changes=1,
        group_count=2_000,
        commit_seconds=1.0,
        consumer_bytes=64 * MIB,
        transaction_seconds=1.0,
        library_records=200_000,
        library_async_records=50_000,
        library_table_records=500_000,
        library_drain_bytes=512 * MIB,
        library_pairs=1,
        spark_records=300_000,
        spark_partitions=(1,),
        spark_record_bytes=(1_000,),
        spark_bytes=60_000_000,
        pipeline_events=100_000,
        pipeline_small_events=20_000,
        pipeline_batch_events=10_000,
        launch_rate=100,
        pipeline_few_warm=4,
        pipeline_few_rounds=3,
        demo_seconds=30,
        demo_settle_seconds=10,
        lake_records=3_000_000,
    )
