"""How two shares compare: their difference, where it lies with 95 % confidence, and how likely chance alone is.

The interval is Newcombe's, from Wilson's score intervals of both shares: it holds for few sales and for none, where
the usual one has no width. The p-value is that of the two-sided z-test with the pooled share.
"""

import math
from typing import NamedTuple

Z_95 = 1.959963984540054


class Comparison(NamedTuple):
    """Of B against A. All are None where one of them was not seen, or sold more often than it was seen."""

    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None


UNKNOWN = Comparison(None, None, None, None)


def compare(views_a: int, sales_a: int, views_b: int, sales_b: int) -> Comparison:
    if not (0 <= sales_a <= views_a and 0 <= sales_b <= views_b and views_a and views_b):
        return UNKNOWN
    share_a, share_b = sales_a / views_a, sales_b / views_b
    low_a, high_a = wilson(sales_a, views_a)
    low_b, high_b = wilson(sales_b, views_b)
    difference = share_b - share_a
    low = difference - math.hypot(share_b - low_b, high_a - share_a)
    high = difference + math.hypot(high_b - share_b, share_a - low_a)
    return Comparison(difference, low, high, _p_value(difference, sales_a + sales_b, views_a, views_b))


def wilson(sales: int, views: int) -> tuple[float, float]:
    """Between which shares the true one lies, by its score."""
    share, weight = sales / views, Z_95**2 / views
    centre = share + weight / 2
    spread = Z_95 * math.sqrt(share * (1 - share) / views + weight / (4 * views))
    return (centre - spread) / (1 + weight), (centre + spread) / (1 + weight)


def _p_value(difference: float, sales: int, views_a: int, views_b: int) -> float:
    pooled = sales / (views_a + views_b)
    error = math.sqrt(pooled * (1 - pooled) * (1 / views_a + 1 / views_b))
    return 1.0 if error == 0 else math.erfc(abs(difference) / error / math.sqrt(2))
