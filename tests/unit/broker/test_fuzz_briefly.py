"""Five seconds of `make fuzz`. `OTTLA_SEED` repeats the requests of an earlier run."""

import os
import random
from pathlib import Path

import pytest
from tests.fuzz.campaign import describe, new_seed, run_campaign
from tests.fuzz.generator import RequestMaker
from tests.fuzz.mutations import MUTATIONS, Mutation

from ottla.broker import api
from ottla.broker.dispatch import registered_handlers
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.framing import decode_request_header
from ottla.protocol.registry import request_class

assert api.__all__, "importing the package registers the handlers"

SERVED = [ApiKey(key) for key in registered_handlers()]
TOPICS = {"one": b"1" * 16, "two": b"2" * 16}


def test_nothing_is_found_in_five_seconds(tmp_path: Path) -> None:
    seed = int(os.environ.get("OTTLA_SEED") or new_seed())
    outcome = run_campaign(tmp_path, seed, seconds=5.0, least_closed=11)
    assert not outcome.problems, describe(outcome)
    assert outcome.counts.requests > 500
    assert outcome.counts.closed_by_broker > 10
    assert outcome.counts.answered_bytes > 1000


def test_requests_are_valid_before_they_are_mutated_and_cover_every_version() -> None:
    dice = random.Random(1)
    maker = RequestMaker(dice, SERVED, TOPICS)
    seen = set()
    for _ in range(20_000):
        frame = memoryview(maker.frame())[4:]
        header, position = decode_request_header(frame)
        cls = request_class(header.api_key)
        assert cls is not None
        cls.decode(frame, header.api_version, position)
        seen.add((header.api_key, header.api_version))
    expected = {
        (key, version)
        for key, handler in registered_handlers().items()
        for version in range(handler.min_version, handler.max_version + 1)
    }
    assert expected <= seen


@pytest.mark.parametrize("mutation", list(dict.fromkeys(MUTATIONS)))
def test_mutations_change_requests(mutation: Mutation) -> None:
    dice = random.Random(2)
    maker = RequestMaker(dice, SERVED, TOPICS)
    changed = 0
    for _ in range(100):
        frame, other = maker.frame(), maker.frame()
        changed += mutation(dice, frame, other) != frame
    assert changed > 50
