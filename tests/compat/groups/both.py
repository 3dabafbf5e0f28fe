"""What Apache Kafka and Ottla tell of the same scripts, each with a broker of its own, at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.peers.kafka import KafkaBroker
from tests.peers.ottla import OttlaBroker
from tests.peers.paths import PeerMissing

Told = dict[str, list[Any]]


def told_by_both(directory: Path, settings: dict[str, str], told_by: Callable[[int], Told]) -> tuple[Told, Told]:
    """Kafka's answers and Ottla's; `told_by` is given the port of a broker."""
    try:
        kafka = KafkaBroker(directory / "kafka", heap="512m", properties=settings, short_lived=True)
    except PeerMissing as error:
        pytest.skip(str(error))

    def ask_ottla() -> Told:
        with OttlaBroker(directory / "ottla", properties=settings) as broker:
            return told_by(broker.port or 0)

    with ThreadPoolExecutor(1) as pool:
        mine = pool.submit(ask_ottla)
        with kafka:
            theirs = told_by(kafka.port or 0)
        return theirs, mine.result()
