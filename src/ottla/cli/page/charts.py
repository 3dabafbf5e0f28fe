"""Answers as charts: for each pipeline one, from the rows of its result topics. The form is Plotly's."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ottla.cli.pipeline_answers import Answer
from ottla.pipelines.bank.job import ALERTS
from ottla.pipelines.campaign.job import COMPARISONS
from ottla.pipelines.frame.results import Row, Table
from ottla.pipelines.movieflix.topics import PROFILES
from ottla.pipelines.social.job import TRENDING
from ottla.pipelines.taxi.topics import SURGE

Chart = dict[str, Any]

# Colours that people with any kind of sight tell apart.
BLUE, ORANGE, GREEN, RED, GREY = "#4e9fe5", "#e69f00", "#2fb591", "#e2604f", "#8a94a6"
_HEAT: Final = [[0.0, "#f6efdc"], [0.25, "#f3c664"], [0.6, "#e5703f"], [1.0, "#a3123a"]]
_MOST_BARS: Final = 10
_MOST_POINTS: Final = 300
_BARE: Final = {"showticklabels": False, "showgrid": False, "zeroline": False}


def chart_of(pipeline: str, tables: Mapping[str, Table], answers: Iterable[Answer]) -> Chart | None:
    """None where there is no answer yet, and for pipelines that have no chart."""
    if pipeline == "ingestion":
        return _lake([row for answer in answers for row in answer.rows])
    drawn = _CHARTS.get(pipeline)
    if drawn is None:
        return None
    topic, draw = drawn
    rows = list(tables.get(topic, {}).values())
    return draw(rows) if rows else None


def local_time(time_ms: int) -> str:
    """Plotly shows the hour that it is given: that of this machine, as the tables do."""
    return datetime.fromtimestamp(time_ms / 1000).isoformat(timespec="milliseconds")


def _bars(names: list[str], values: list[float], title: str, color: str = BLUE) -> Chart:
    """The first is at the top."""
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": names,
        "text": [f"{value:,.0f}" for value in values],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": color},
        "hoverinfo": "x+y",
    }
    return {
        "data": [trace],
        "layout": {
            "xaxis": {"title": {"text": title}, "range": [0, 1.15 * max(values)]},
            "yaxis": {"autorange": "reversed", "automargin": True},
        },
    }


def _campaign(rows: list[Row]) -> Chart | None:
    """Of the newest window of each experiment: the difference, and between what it surely is."""
    newest: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: int(row["window_start"])):
        if row["difference"] is not None:
            newest[row["experiment"]] = row
    shown = [newest[name] for name in sorted(newest)]
    colors = {"B": GREEN, "A": ORANGE}
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [100 * row["difference"] for row in shown],
        "y": [row["experiment"] for row in shown],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [100 * (row["high"] - row["difference"]) for row in shown],
            "arrayminus": [100 * (row["difference"] - row["low"]) for row in shown],
            "thickness": 3,
            "width": 8,
            "color": GREY,
        },
        "marker": {"size": 15, "color": [colors.get(row["better"], GREY) for row in shown]},
        "hovertemplate": "%{y}: %{x:.1f} points<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": "how many points B converts better than A"}, "zerolinewidth": 2},
        "yaxis": {"automargin": True},
    }
    return {"data": [trace], "layout": layout} if shown else None


def _surge(rows: list[Row]) -> Chart | None:
    """The cells of each city where they are, coloured by their price."""
    import h3

    cities = sorted({row["city"] for row in rows})
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "coloraxis": {"colorscale": _HEAT, "cmin": 100, "cmax": 300, "colorbar": {"title": {"text": "% of price"}}},
        "grid": {"rows": 1, "columns": len(cities), "pattern": "independent"},
    }
    for number, city in enumerate(cities, 1):
        axis = "" if number == 1 else str(number)
        cells = [row for row in rows if row["city"] == city]
        places = [h3.cell_to_latlng(row["cell"]) for row in cells]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [longitude for _, longitude in places],
                "y": [latitude for latitude, _ in places],
                "xaxis": f"x{axis}",
                "yaxis": f"y{axis}",
                "text": [f"{row['percent']} %, demand {row['demand']}, supply {row['supply']}" for row in cells],
                "hovertemplate": f"{city}: %{{text}}<extra></extra>",
                "marker": {
                    "symbol": "hexagon",
                    "size": 15,
                    "color": [row["percent"] for row in cells],
                    "coloraxis": "coloraxis",
                    "line": {"width": 1, "color": GREY},
                },
            }
        )
        layout[f"xaxis{axis}"] = {"title": {"text": city}, **_BARE}
        layout[f"yaxis{axis}"] = dict(_BARE)
    return {"data": data, "layout": layout}


def _favourites(rows: list[Row]) -> Chart | None:
    counted = Counter(genre for row in rows for genre in row["favourites"]).most_common(_MOST_BARS)
    if not counted:
        return None
    return _bars([name for name, _ in counted], [count for _, count in counted], "users who like it", BLUE)


def _alerts(rows: list[Row]) -> Chart | None:
    shown = sorted(rows, key=lambda row: int(row["event_time"]))[-_MOST_POINTS:]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [local_time(int(row["event_time"])) for row in shown],
        "y": [row["amount_cents"] / 100 for row in shown],
        "text": [f"{row['account']}, limit {row['limit_cents'] / 100:,.2f}" for row in shown],
        "hovertemplate": "%{y:,.2f}: %{text}<extra></extra>",
        "marker": {"size": 10, "color": RED, "opacity": 0.75},
    }
    layout = {"xaxis": {"type": "date"}, "yaxis": {"title": {"text": "amount above its limit"}, "rangemode": "tozero"}}
    return {"data": [trace], "layout": layout}


def _trending(rows: list[Row]) -> Chart | None:
    newest = max(int(row["window_start"]) for row in rows)
    first = sorted((row for row in rows if row["window_start"] == newest), key=lambda row: int(row["rank"]))
    shown = first[:_MOST_BARS]
    return _bars([row["post_id"] for row in shown], [row["score"] for row in shown], "score in this window", ORANGE)


def _lake(rows: list[Row]) -> Chart | None:
    shown = rows[:_MOST_BARS]
    return _bars([row["topic"] for row in shown], [row["rows"] for row in shown], "records", GREEN) if shown else None


_CHARTS: Final[Mapping[str, tuple[str, Callable[[list[Row]], Chart | None]]]] = {
    "campaign": (COMPARISONS, _campaign),
    "gettaxi": (SURGE, _surge),
    "movieflix": (PROFILES, _favourites),
    "mybank": (ALERTS, _alerts),
    "mysocialmedia": (TRENDING, _trending),
}
