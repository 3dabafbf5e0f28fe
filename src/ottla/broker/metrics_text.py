"""Prometheus' text format (version 0.0.4).

It is written here and not by prometheus-client: that library counts in objects of its own, each behind a lock and found
by its labels, while the broker's counts are plain attributes that exist anyway. What would be left of the library is
this file.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTER, GAUGE, HISTOGRAM, SUMMARY = "counter", "gauge", "histogram", "summary"


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one name; `labels` are the ones that its series may have."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """What comes before the series, which follow without a line of another family between them."""
        text = self.help.replace("\\", "\\\\").replace("\n", "\\n")
        return f"# HELP {self.name} {text}\n# TYPE {self.name} {self.kind}\n"

    def line(self, value: float, *values: object) -> str:
        """One series with a value for each label, or with none of them: the sum over all."""
        return f"{self.name}{labelled(self.labels, values)} {value}\n"


def labelled(names: Sequence[str], values: Sequence[object]) -> str:
    """Labels in braces; the empty text where there are no values."""
    if not values:
        return ""
    pairs = zip(names, values, strict=True)
    return "{" + ",".join(f'{name}="{escaped(str(value))}"' for name, value in pairs) + "}"


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Histogram:
    """How many values fell below each of some bounds, and their sum."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        return sum(self._counts)

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def lines(self, family: Family, *values: object) -> Iterator[str]:
        names = (*family.labels, "le")
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f"{family.name}_bucket{labelled(names, (*values, bound))} {total}\n"
        labels = labelled(family.labels, values)
        yield f"{family.name}_sum{labels} {self.sum}\n"
        yield f"{family.name}_count{labels} {total}\n"
