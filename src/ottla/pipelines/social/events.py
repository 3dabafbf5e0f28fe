"""People who post, like and comment; and the day of the launch, when they all come at once."""

import random
from collections.abc import Iterator

from ottla.pipelines.frame.generating import Disorder, Event, json_event

POSTS, LIKES, COMMENTS = "mysocialmedia.posts", "mysocialmedia.likes", "mysocialmedia.comments"
LATENESS_SECONDS = 120

BURST_AFTER_SECONDS = 120
BURST_SECONDS = 20
BURST_FACTOR = 50

_USERS = 2_000
_POST_SHARE, _LIKE_SHARE = 0.05, 0.75
_REMEMBERED_POSTS = 300
_WORDS = ("tea", "rain", "trains", "paper", "letters", "beetles", "castles", "swimming", "Prague", "summer")


def events(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """What people do, with all the disorder of a real stream. Two minutes after the start comes the launch: for twenty
    seconds, fifty times as much."""
    disorder = Disorder(LATENESS_SECONDS * 1000)
    yield from disorder.applied(_activity(seed, start_ms, rate), random.Random(f"{seed} disorder"))


def _activity(seed: int, start_ms: int, rate: float) -> Iterator[Event]:
    """Each event at its time, in the order of time."""
    choices = random.Random(seed)
    posts: list[str] = []
    now_ms = float(start_ms)
    number = 0
    while True:
        number += 1
        now_ms += choices.expovariate(rate * _factor(now_ms - start_ms)) * 1000
        user = f"u{choices.randrange(_USERS)}"
        dice = choices.random()
        if not posts or dice < _POST_SHARE:
            topic, post = POSTS, f"p{seed:x}-{number}"
            posts = [*posts[-_REMEMBERED_POSTS:], post]
        else:
            topic = LIKES if dice < _POST_SHARE + _LIKE_SHARE else COMMENTS
            post = _popular(posts, choices)
        fields = {} if topic == LIKES else {"text": " ".join(choices.choices(_WORDS, k=4))}
        yield json_event(
            topic,
            post,
            int(now_ms),
            event_id=f"{seed:x}-{number}",
            event_time=int(now_ms),
            post_id=post,
            user_id=user,
            **fields,
        )


def _factor(since_ms: float) -> int:
    is_launch = BURST_AFTER_SECONDS * 1000 <= since_ms < (BURST_AFTER_SECONDS + BURST_SECONDS) * 1000
    return BURST_FACTOR if is_launch else 1


def _popular(posts: list[str], choices: random.Random) -> str:
    """Some posts are liked much more than others: those that have an early number among the remembered."""
    return posts[int(len(posts) * choices.random() ** 4)]
