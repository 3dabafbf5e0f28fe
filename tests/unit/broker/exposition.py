"""A strict reader of Prometheus' text format: what it takes, Prometheus takes, and more than once over."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

Labels = tuple[tuple[str, str], ...]

_HELP = re.compile(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\]|\\\\|\\n)+)")
_TYPE = re.compile(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary)")
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.+)\})? (-?[0-9][0-9.e+-]*)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


@dataclass
class Series:
    kind: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)


class Exposition:
    """Families by name; `value` is one series, 0 where it is not there yet."""

    def __init__(self, text: str) -> None:
        assert text.endswith("\n"), "the last line has an end too"
        self.families: dict[str, Series] = {}
        self._read(iter(text.removesuffix("\n").split("\n")))
        for name, series in self.families.items():
            if series.kind == "histogram":
                _check_buckets(name, series)

    def _read(self, lines: Iterator[str]) -> None:
        name, series = "", Series("")
        for line in lines:
            head = _HELP.fullmatch(line)
            if head is not None:
                kind = _TYPE.fullmatch(next(lines))
                assert kind is not None, line
                assert kind[1] == head[1], line
                name, series = head[1], Series(kind[2])
                assert name not in self.families, f"{name} comes twice"
                assert (series.kind == "counter") == name.endswith("_total"), line
                self.families[name] = series
                continue
            sample = _SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample[1] in [name + suffix for suffix in _SUFFIXES.get(series.kind, ("",))], line
            key = (sample[1], _labels(sample[2] or ""))
            assert key not in series.samples, f"{line} comes twice"
            series.samples[key] = float(sample[3])
            assert math.isfinite(series.samples[key]), line
            assert series.kind == "gauge" or series.samples[key] >= 0, line

    def value(self, name: str, /, **labels: str) -> float:
        family = next(
            series
            for stem in (name, *(name.removesuffix(end) for end in ("_bucket", "_sum", "_count")))
            if (series := self.families.get(stem)) is not None
        )
        return family.samples.get((name, tuple(sorted(labels.items()))), 0.0)

    def labels(self, name: str) -> set[Labels]:
        return {labels for _, labels in self.families[name].samples}


def _labels(text: str) -> Labels:
    found: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        label = _LABEL.match(text, position)
        assert label is not None, text
        found.append((label[1], re.sub(r'\\\\|\\"|\\n', lambda match: _ESCAPES[match[0]], label[2])))
        position = label.end()
    assert len({name for name, _ in found}) == len(found), text
    return tuple(sorted(found))


def _check_buckets(name: str, series: Series) -> None:
    """Buckets grow with their bounds, and the last one has everything."""
    buckets: dict[Labels, list[tuple[float, float]]] = {}
    for (sample, labels), value in series.samples.items():
        if sample == f"{name}_bucket":
            bound = float(dict(labels)["le"])
            rest = tuple(label for label in labels if label[0] != "le")
            buckets.setdefault(rest, []).append((bound, value))
    for rest, counts in buckets.items():
        assert counts == sorted(counts)
        assert [value for _, value in counts] == sorted(value for _, value in counts)
        assert counts[-1][0] == math.inf
        assert counts[-1][1] == series.samples[f"{name}_count", rest]
        assert (f"{name}_sum", rest) in series.samples
