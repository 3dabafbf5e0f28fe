"""Spark and brokers for the tests of pipelines: those of `tests/spark`, and what drives a pipeline on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.driving import Drive
from tests.spark.conftest import Target, _session, kafka_target, ottla_target, spark, spark_home

from ottla.pipelines.frame.session import prepare

__all__ = ["_session", "kafka_target", "ottla_target", "spark", "spark_home"]


@pytest.fixture
def pipeline_spark(spark: Any) -> Any:
    """A session of the same JVM, set up as pipelines want it."""
    own = spark.newSession()
    prepare(own)
    return own


@pytest.fixture
def drive(pipeline_spark: Any, ottla_target: Target, tmp_path: Path) -> Drive:
    """Drives pipelines on Ottla in this process."""
    return Drive(pipeline_spark, ottla_target.bootstrap, tmp_path)
