"""The Spark example of docs/TESTING.md, run as it stands; only the connector comes from the installed peers."""

from __future__ import annotations

import pytest
from tests.peers.paths import SPARK_CONNECTOR_LIBS, require_libs
from tests.unit.testing.guide import SLOW_EXAMPLES, run_example

pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
pytestmark = pytest.mark.timeout(180)


def test_the_spark_example(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = SLOW_EXAMPLES
    jars = ",".join(sorted(map(str, require_libs(SPARK_CONNECTOR_LIBS, "spark-connector").glob("*.jar"))))
    downloaded = '"spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"'
    assert downloaded in example
    run_example(pytester, monkeypatch, example.replace(downloaded, f'"spark.jars", "{jars}"'))
