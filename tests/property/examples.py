"""How many examples a property is tried with: few in every run, many in `make soak`."""

import os

TIMES_IN_SOAK = 20


def examples(usual: int) -> int:
    return usual * TIMES_IN_SOAK if os.environ.get("OTTLA_SOAK") else usual
