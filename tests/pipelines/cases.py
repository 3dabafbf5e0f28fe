"""All pipelines with their references, for the tests that run each of them the same way.

`tests/pipelines/<folder>/reference.py` has `verify(run, events)`; the folder has the name of the pipeline's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from tests.pipelines.driving import Run

from ottla.pipelines.frame import catalogue
from ottla.pipelines.frame.generating import Event
from ottla.pipelines.frame.pipeline import Pipeline


@dataclass(frozen=True)
class Case:
    pipeline: Pipeline
    verify: Callable[[Run, Sequence[Event]], None]


def case(name: str) -> Case:
    pipeline = catalogue.pipeline(name)
    folder = pipeline.generate.__module__.split(".")[-2]
    return Case(pipeline, import_module(f"tests.pipelines.{folder}.reference").verify)
