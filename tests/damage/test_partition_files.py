"""Damage to the files of partitions, all of it in one broker at a time. `OTTLA_SOAK=1` tries it in many ways."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest
from tests.damage.matrix import MOMENTS, try_all
from tests.damage.scene import Kind

from ottla.records import Codec

IN_SOAK = bool(os.environ.get("OTTLA_SOAK"))
SEED = int(os.environ.get("OTTLA_SEED", random.SystemRandom().randrange(2**32) if IN_SOAK else 0))
ROUNDS = 2 if IN_SOAK else 1
KINDS = {
    "plain": Kind(),
    "zstd": Kind(Codec.ZSTD),
    "snappy, append time": Kind(Codec.SNAPPY, {"message.timestamp.type": "LogAppendTime"}),
    "gzip, compacted": Kind(Codec.GZIP, {"cleanup.policy": "compact"}),
    "lz4, compacted and deleted": Kind(Codec.LZ4, {"cleanup.policy": "compact,delete", "retention.ms": "-1"}),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", KINDS if IN_SOAK else ["plain"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_damage_costs_what_it_destroyed_and_nothing_else(tmp_path: Path, moment: str, name: str) -> None:
    count = 0
    for number in range(ROUNDS):
        tried, problems = try_all(tmp_path / str(number), moment, KINDS[name], seeds=[SEED + number])
        count += len(tried)
        assert not problems, "\n".join([f"OTTLA_SEED={SEED}", *problems])
    assert count > 80
    if IN_SOAK:
        sys.stdout.write(f"{moment}, {name}: {count} cases\n")
