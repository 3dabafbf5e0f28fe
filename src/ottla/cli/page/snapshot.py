"""All that the page shows at one moment, as plain data for JSON."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.page.charts import chart_of, local_time
from ottla.cli.pipeline_layout import NO_ANSWER, Shown, chosen_sentences
from ottla.cli.pipeline_tables import seconds_text

if TYPE_CHECKING:
    from ottla.pipelines.frame.results import Table

# Twenty minutes, at one every two seconds.
_MOST_MOMENTS: Final = 600
_MOMENT_MS: Final = 2_000
_SENTENCES: Final = 2
_COLORS: Final = ("#4e9fe5", "#e69f00", "#2fb591", "#cc79a7", "#e2604f", "#b8a12b")


class Snapshots:
    """Remembers how far behind pipelines were; everything else is of now."""

    def __init__(self) -> None:
        self._moments: deque[tuple[int, dict[str, int | None]]] = deque(maxlen=_MOST_MOMENTS)

    def take(self, now_ms: int, head: str, pipelines: Sequence[Shown], tables: "Mapping[str, Table]") -> dict[str, Any]:
        if not self._moments or now_ms - self._moments[-1][0] >= _MOMENT_MS:
            self._moments.append((now_ms, {one.state.pipeline: one.state.behind_ms for one in pipelines}))
        return {
            "head": head,
            "behind": self._behind([one.state.pipeline for one in pipelines]),
            "pipelines": [self._pipeline(one, tables) for one in pipelines],
        }

    def _behind(self, names: Sequence[str]) -> dict[str, Any]:
        times = [local_time(now_ms) for now_ms, _ in self._moments]
        lines = [
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": times,
                "y": [None if (behind := found.get(name)) is None else behind / 1000 for _, found in self._moments],
                "line": {"width": 2, "color": _COLORS[number % len(_COLORS)]},
                "hovertemplate": "%{y:.1f} s<extra>%{fullData.name}</extra>",
            }
            for number, name in enumerate(names)
        ]
        layout = {
            "xaxis": {"type": "date"},
            "yaxis": {"title": {"text": "seconds behind"}, "rangemode": "tozero"},
            "showlegend": True,
        }
        return {"data": lines, "layout": layout}

    def _pipeline(self, one: Shown, tables: "Mapping[str, Table]") -> dict[str, Any]:
        state = one.state
        return {
            "name": state.pipeline,
            "state": state.state,
            "figures": [
                ["sent", f"{one.sent:,}"],
                ["rows/s", f"{state.rows_per_second:,.0f}"],
                ["lag", "-" if state.lag is None else f"{state.lag:,}"],
                ["behind", seconds_text(state.behind_ms) or "-"],
                ["delay", seconds_text(state.delay_ms) or "-"],
                ["left out", f"{state.malformed + state.late + state.dropped:,}"],
            ],
            "sentences": chosen_sentences(one.answers, _SENTENCES) or [NO_ANSWER],
            "chart": chart_of(state.pipeline, tables, one.answers),
        }
