"""People who see campaigns, click, and buy."""

import random
from collections.abc import Iterator

from ottla.pipelines.frame.generating import Disorder, Event, json_event

VIEWS, CLICKS, PURCHASES = "campaign.views", "campaign.clicks", "campaign.purchases"
CAMPAIGNS = "campaign.campaigns"
LATENESS_SECONDS = 600

_USERS = 5_000
_CLICK_SHARE = 0.3
# How often a click ends in a purchase, for the campaigns A and B of each experiment.
_EXPERIMENTS = {
    "autumn-banner": (0.20, 0.30),
    "checkout-colour": (0.25, 0.25),
    "free-shipping": (0.15, 0.40),
}


def campaigns(start_ms: int) -> list[Event]:
    """What is compared with what; it is known before anybody sees anything."""
    return [
        json_event(CAMPAIGNS, campaign_id(experiment, arm), start_ms, experiment=experiment, arm=arm)
        for experiment in _EXPERIMENTS
        for arm in ("A", "B")
    ]


def campaign_id(experiment: str, arm: str) -> str:
    return f"{experiment}-{arm.lower()}"


def events(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """The campaigns, and then what people do, with all the disorder of a real stream."""
    yield from campaigns(start_ms)
    yield from Disorder(LATENESS_SECONDS * 1000).applied(
        _visits(seed, start_ms, rate), random.Random(f"{seed} disorder")
    )


def _visits(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Each visit at its time, in the order of time."""
    choices = random.Random(seed)
    now_ms = float(start_ms)
    number = 0
    experiments = sorted(_EXPERIMENTS)
    while True:
        experiment = choices.choice(experiments)
        arm = choices.choice("AB")
        user = f"u{choices.randrange(_USERS)}"
        steps = [VIEWS]
        if choices.random() < _CLICK_SHARE:
            steps.append(CLICKS)
            if choices.random() < _EXPERIMENTS[experiment]["AB".index(arm)]:
                steps.append(PURCHASES)
        for step in steps:
            number += 1
            now_ms += choices.expovariate(rate) * 1000
            fields = {"amount_cents": choices.randrange(500, 20_000)} if step == PURCHASES else {}
            yield json_event(
                step,
                user,
                int(now_ms),
                event_id=f"{seed:x}-{number}",
                event_time=int(now_ms),
                campaign_id=campaign_id(experiment, arm),
                user_id=user,
                **fields,
            )
