"""How many examples a property is tried with: few in every run, many in `make soak`."""

import os

TIMES_IN_SOAK = 20


def is_soak() -> bool:
    return bool(os.environ.get("OTTLA_SOAK"))


def examples(usual: int) -> int:
    return usual * TIMES_IN_SOAK if is_soak() else usual
