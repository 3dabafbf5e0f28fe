"""How Spark comes to know the format by itself: by the name of a package."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.conftest import Target
from tests.spark.source.reading import numbered, reader, rows_of, write

pytestmark = pytest.mark.timeout(180)


def test_spark_finds_the_format_by_itself(spark: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(3))
    session = spark.newSession()
    assert len(rows_of(reader(session.read, "ottla", ottla_target, subscribe=topic).load())) == 3
