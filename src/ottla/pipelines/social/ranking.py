"""The best posts of a window.

Scores only ever grow, so the best so far are all that has to be remembered: a post that is not among them comes back
with its whole score as soon as it has a greater one.

Of posts with the same score the one with the lesser id is first.
"""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

PLACES = 10
COMMENT_SCORE = 3
RANKS = "window_start BIGINT, window_end BIGINT, rank INT, post_id STRING, score BIGINT"
STATE = "best STRING"


def best(scores: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """The first places among posts and their scores; of a post that is named more than once its greatest score."""
    greatest: dict[str, int] = {}
    for post, score in scores:
        greatest[post] = max(score, greatest.get(post, 0))
    return sorted(greatest.items(), key=lambda one: (-one[1], one[0]))[:PLACES]


def best_of_window(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: "GroupState") -> Iterator[pd.DataFrame]:
    """New ranks of a window from the scores that have changed in it; none where the ranks are as they were."""
    if state.hasTimedOut:
        state.remove()
        return
    before = [(post, score) for post, score in json.loads(state.get[0])] if state.exists else []
    changed: list[tuple[str, int]] = []
    window_end = 0
    for frame in frames:
        changed += zip(frame["post_id"], frame["score"].astype(int), strict=True)
        window_end = int(frame["window_end"].iloc[0])
    now = best([*before, *((post, int(score)) for post, score in changed)])
    state.setTimeoutTimestamp(max(window_end, state.getCurrentWatermarkMs() + 1))
    if now != before:
        state.update((json.dumps(now),))
        yield pd.DataFrame(
            [(int(key[0]), window_end, rank, post, score) for rank, (post, score) in enumerate(now, 1)],
            columns=["window_start", "window_end", "rank", "post_id", "score"],
        )
