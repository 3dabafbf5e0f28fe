"""A compacted log on a disk in memory and its cleaner, for tests."""

from collections.abc import Iterable

from tests.unit.log.support import START_MS, Rig, append, read_all

from ottla.log.cleaner import CleanerSettings, LogCleaner
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.records import Codec, Record, build_batch, read_records
from ottla.runtime import Disk, Executor
from ottla.runtime.workbench import LocalWorkbench

Pair = tuple[bytes, bytes | None]


class CompactingRig(Rig):
    """Every closed segment may be cleaned as soon as something in it is dirty."""

    def __init__(
        self, *, disk: Disk | None = None, path: str = "/data", executor: Executor | None = None, **config: object
    ) -> None:
        values: dict[str, object] = {
            "cleanup_policy": ("compact",),
            "min_cleanable_dirty_ratio": 0.0,
            "segment_bytes": 2000,
            "index_interval_bytes": 100,
            "file_delete_delay_ms": 0,
            **config,
        }
        super().__init__(LogConfig(**values), disk=disk, path=path, executor=executor)  # type: ignore[arg-type]
        self.settings = CleanerSettings(dedupe_buffer_bytes=1 << 20)

    async def open(self) -> Log:
        log = await super().open()
        self.replicate()
        self.cleaner = LogCleaner(
            self.manager,
            disk=self.disk,
            clock=self.clock,
            executor=self.executor,
            workbench=LocalWorkbench(self.executor, self.disk),
            ids=self.ids,
            settings=self.settings,
        )
        await self.cleaner.read_checkpoints()
        return log

    async def write(self, *pairs: Pair, codec: Codec = Codec.NONE, producer_id: int = -1, sequence: int = -1) -> int:
        """Append one batch with these keys and values; the offset of the first."""
        batch = keyed_batch(pairs, self.clock.now_ms(), codec, producer_id, sequence)
        info = await append(self.log, batch, now_ms=self.clock.now_ms())
        self.replicate()
        return info.first_offset

    def replicate(self) -> None:
        """What a partition does when all replicas have everything."""
        self.log.high_watermark = self.log.log_end_offset
        self.log.producer_state.transactions.replicated(self.log.high_watermark)

    async def clean(self) -> None:
        """Close the active segment and clean until nothing is due."""
        await self.log.roll()
        while await self.cleaner.clean_dirtiest():
            pass

    def records(self) -> list[Record]:
        return read_records(read_all(self.log))

    def content(self) -> list[tuple[int, bytes | None, bytes | None]]:
        return [(record.offset, record.key, record.value) for record in self.records()]

    def offsets(self) -> list[int]:
        return [record.offset for record in self.records()]

    def names(self) -> list[str]:
        return self.disk.list_directory(self.log_path)


def keyed_batch(
    pairs: Iterable[Pair],
    timestamp: int = START_MS,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    sequence: int = -1,
    *,
    transactional: bool = False,
    epoch: int = 0,
) -> memoryview:
    records = [
        Record(timestamp=timestamp + number, key=key, value=value, headers=(("h", b"x"), ("n", None)))
        for number, (key, value) in enumerate(pairs)
    ]
    batch = build_batch(
        records,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch if producer_id >= 0 else -1,
        base_sequence=sequence,
        transactional=transactional,
    )
    return memoryview(bytearray(batch))
