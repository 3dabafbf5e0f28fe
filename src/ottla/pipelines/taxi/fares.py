"""What a ride costs: a start, each kilometre, each second, times the surge price that the user was shown."""

from __future__ import annotations

START_CENTS = 250
CENTS_A_KILOMETRE = 120
CENTS_A_MINUTE = 30


def cost_cents(distance_m: int, duration_s: int, surge_percent: int) -> int:
    """In whole cents, halves rounded up; all in whole numbers, so that it is exact."""
    thousandths = START_CENTS * 1000 + CENTS_A_KILOMETRE * distance_m + CENTS_A_MINUTE * 1000 * duration_s // 60
    return (thousandths * surge_percent + 50_000) // 100_000
