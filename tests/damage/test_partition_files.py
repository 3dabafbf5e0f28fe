"""Damage to the files of partitions, all of it in one broker at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.damage.matrix import MOMENTS, try_all
from tests.damage.scene import Kind


@pytest.mark.parametrize("moment", MOMENTS)
def test_damage_costs_what_it_destroyed_and_nothing_else(tmp_path: Path, moment: str) -> None:
    tried, problems = try_all(tmp_path / "scene", moment, Kind(), seeds=range(1))
    assert len(tried) > 80
    assert not problems, "\n".join(problems)
