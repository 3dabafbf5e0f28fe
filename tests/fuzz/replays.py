"""What the guided search has found, sent to a real broker: the same bytes, with the ids that its topics have."""

import random
from pathlib import Path

from tests.fuzz.bytes_mutations import havoc
from tests.fuzz.corpus_files import FoundInputs

REPLAYED_SHARE = 0.4
CHANGED_SHARE = 0.3


class Replays:
    """The corpus of the broker's target; it may grow while it is replayed."""

    def __init__(self, corpus: Path, guided_ids: dict[str, bytes]) -> None:
        self._found = FoundInputs(corpus, "broker")
        self._guided_ids = guided_ids
        self._inputs: list[bytes] = []
        self.replayed = 0

    def refresh(self) -> None:
        self._inputs += self._found.news()

    def draw(self, dice: random.Random, topics: dict[str, bytes]) -> bytes | None:
        """The bytes of one connection, as they were found or changed a little; None when it is not their turn."""
        if not self._inputs or dice.random() >= REPLAYED_SHARE:
            return None
        self.replayed += 1
        data = dice.choice(self._inputs)
        for name, guided_id in self._guided_ids.items():
            data = data.replace(guided_id, topics.get(name, guided_id))
        return havoc(dice, data, dice.choice(self._inputs)) if dice.random() < CHANGED_SHARE else data
