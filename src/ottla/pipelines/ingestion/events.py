"""People who look at pages: something to ingest where no other pipeline runs."""

import random
from collections.abc import Iterator

from ottla.pipelines.frame.generating import Disorder, Event, json_event

VISITS = "ingestion.visits"
LATENESS_SECONDS = 600

_PAGES = ("/", "/offers", "/basket", "/help", "/account")


def events(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Visits with all the disorder of a real stream."""
    return Disorder(LATENESS_SECONDS * 1000).applied(_visits(seed, start_ms, rate), random.Random(f"{seed} disorder"))


def _visits(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    choices = random.Random(seed)
    now_ms = float(start_ms)
    number = 0
    while True:
        number += 1
        now_ms += choices.expovariate(rate) * 1000
        user = f"u{choices.randrange(1000)}"
        yield json_event(
            VISITS,
            user,
            int(now_ms),
            event_id=f"{seed:x}-v{number}",
            event_time=int(now_ms),
            user_id=user,
            page=choices.choice(_PAGES),
        )
