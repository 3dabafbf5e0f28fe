"""What players send, with the disorder of real ones, after the catalogue of what they can play."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain

from ottla.pipelines.frame.generating import Disorder, Event, json_event
from ottla.pipelines.movieflix.catalogue import shows
from ottla.pipelines.movieflix.topics import CATALOGUE, VIEWS
from ottla.pipelines.movieflix.viewing import STEP_MS, Audience

LATENESS_SECONDS = 600


def generate(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """First the catalogue, then about `rate` views a second."""
    catalogue = shows(start_ms)
    users = max(1, round(2 * rate * STEP_MS / 1000))
    views = (
        json_event(VIEWS, view.user_id, view.event_time, **view._asdict())
        for view in Audience(seed, catalogue, users).views(start_ms)
    )
    published = (json_event(CATALOGUE, show.show_id, start_ms, **show._asdict()) for show in catalogue)
    return chain(published, Disorder(LATENESS_SECONDS * 1000).applied(views, random.Random(seed)))
