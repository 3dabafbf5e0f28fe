"""The pipelines by name. One is loaded when it is asked for."""

from importlib import import_module

from ottla.pipelines.frame.pipeline import Pipeline

_HOMES = {
    "mybank": "ottla.pipelines.bank.job",
    "campaign": "ottla.pipelines.campaign.job",
    "gettaxi": "ottla.pipelines.taxi.job",
    "movieflix": "ottla.pipelines.movieflix.job",
    "ingestion": "ottla.pipelines.ingestion.job",
    "mysocialmedia": "ottla.pipelines.social.job",
}


class UnknownPipeline(ValueError):
    """There is none of that name."""


def names() -> list[str]:
    return sorted(_HOMES)


def pipeline(name: str) -> Pipeline:
    home = _HOMES.get(name)
    if home is None:
        raise UnknownPipeline(f"there is no pipeline {name!r}: there are {', '.join(names())}")
    found: Pipeline = import_module(home).PIPELINE
    return found
