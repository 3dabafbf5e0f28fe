"""Every input exactly once: jobs that consume, produce and commit in transactions, killed at any moment, broker too.

Three kills; `OTTLA_SOAK=1` makes it thirty. `OTTLA_SEED` repeats the moments of an earlier run.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import time
from pathlib import Path

import pytest
from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.groups.conftest import QUICK
from tests.compat.clients.proxy import Proxy
from tests.compat.clients.transactions.conftest import TRANSACTION_APIS
from tests.compat.clients.transactions.exactly_once import (
    PARTITIONS,
    PATIENCE_SECONDS,
    Feeder,
    Job,
    committed_records,
)
from tests.compat.suites.left_out import served_apis
from tests.conftest import start_broker
from tests.peers.paths import PeerMissing
from tests.peers.ports import LOOPBACK, free_port
from tests.peers.process import ServerProcess

_KILLS = 30 if os.environ.get("OTTLA_SOAK") else 3
_LONGEST_ROUND_SECONDS = 1.0
_LONGEST_SILENCE_SECONDS = 0.1


def wait_for_progress(jobs: list[Job]) -> None:
    """A kill means something only while transactions are under way."""
    before = sum(job.committed for job in jobs)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(job.committed for job in jobs) == before:
        assert time.monotonic() < deadline, f"no transaction in {PATIENCE_SECONDS} s: {[job.story() for job in jobs]}"
        time.sleep(0.01)


def kill(victim: str, moments: random.Random, server: ServerProcess, proxy: Proxy, jobs: list[Job]) -> None:
    if victim == "job":
        moments.choice(jobs).kill()
        return
    if victim == "broker after lost answers":
        proxy.mute()
        time.sleep(moments.uniform(0.0, _LONGEST_SILENCE_SECONDS))
    server.kill()
    server.start()


@pytest.mark.timeout(240 + 30 * _KILLS)
@pytest.mark.parametrize(("language", "protocol"), [("python", "classic"), ("java", "consumer")])
def test_every_input_comes_out_once(target: str, tmp_path: Path, topic: str, language: str, protocol: str) -> None:
    copy_under_kills(target, tmp_path, topic, language, protocol)


@pytest.mark.timeout(240 + 30 * _KILLS)
@pytest.mark.parametrize(("kind", "protocol"), [("ottla", "consumer"), ("kafka", "classic")])
def test_every_input_comes_out_once_with_our_own_client(tmp_path: Path, topic: str, kind: str, protocol: str) -> None:
    try:
        copy_under_kills(kind, tmp_path, topic, "ottla", protocol)
    except PeerMissing as missing:
        pytest.skip(str(missing))


def copy_under_kills(target: str, tmp_path: Path, topic: str, language: str, protocol: str) -> None:
    seed = int(os.environ.get("OTTLA_SEED") or secrets.randbelow(1 << 32))
    sys.stdout.write(f"OTTLA_SEED={seed}\n")
    moments = random.Random(f"{seed} {language}")
    victims = (["broker", "job", "broker after lost answers"] * _KILLS)[:_KILLS]
    moments.shuffle(victims)
    port = free_port()
    proxy = Proxy(port)
    told = {"advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{proxy.port}"}
    server = start_broker(target, tmp_path / "broker", port, QUICK | told)
    jobs: list[Job] = []
    try:
        if missing := [api.name for api in TRANSACTION_APIS if api not in served_apis(port)]:
            pytest.skip(f"APIs not served: {', '.join(missing)}")
        source, copy = f"{topic}-in", f"{topic}-out"
        for name in (source, copy):
            ConfluentClient(server.bootstrap).create_topic(name, partitions=PARTITIONS)
        bootstrap = f"{LOOPBACK}:{proxy.port}"
        feeder = Feeder(bootstrap, source)
        jobs += [
            Job(language, tmp_path, f"{topic}-{name}", bootstrap, source, copy, f"{topic}-group", protocol)
            for name in ("a", "b")
        ]
        for victim in victims:
            wait_for_progress(jobs)
            time.sleep(moments.uniform(0.0, _LONGEST_ROUND_SECONDS))
            kill(victim, moments, server, proxy, jobs)
        wait_for_progress(jobs)
        fed = feeder.finish()
        for partition in range(PARTITIONS):
            found = committed_records(bootstrap, copy, partition, fed)
            assert found == list(range(fed)), _first_difference(found, fed, jobs)
    finally:
        for job in jobs:
            job.end()
        server.kill()
        proxy.close()


def _first_difference(found: list[int], fed: int, jobs: list[Job]) -> str:
    at = next((at for at, number in enumerate(found) if number != at), min(len(found), fed))
    stories = [job.story() for job in jobs]
    return f"{fed} fed, {len(found)} came out; from {at} on: {found[at : at + 10]}\n{stories}"
