"""How Spark comes to know the format: by the name of a package, or because it is told, in each thread that writes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.spark.conftest import Target
from tests.spark.sink.writing import options_of, values
from tests.spark.sink.writing import write as write_frame
from tests.spark.source.reading import numbered, reader, rows_of, write

from ottla.spark import register

pytestmark = pytest.mark.timeout(180)


def test_spark_finds_the_format_by_itself(spark: Any, ottla_target: Target) -> None:
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(3))
    session = spark.newSession()
    assert len(rows_of(reader(session.read, "ottla", ottla_target, subscribe=topic).load())) == 3


def _batch(session: Any, target: Target, topic: str, place: Path) -> None:
    write_frame(session.range(0, 5, 1, 1).selectExpr("cast(id AS string) AS value"), "ottla", target, topic=topic)


def _stream(session: Any, target: Target, topic: str, place: Path) -> None:
    (place / "numbers").mkdir()
    (place / "numbers" / "0.txt").write_text("".join(f"{number}\n" for number in range(5)))
    rows = session.readStream.format("text").load(str(place / "numbers"))
    options = options_of(target, topic=topic, checkpointLocation=place / "checkpoint")
    rows.writeStream.format("ottla").options(**options).trigger(availableNow=True).start().awaitTermination(120)


@pytest.mark.parametrize("is_new", [False, True], ids=["first session", "another session"])
@pytest.mark.parametrize("write_five", [_batch, _stream], ids=["batch", "stream"])
def test_a_thread_that_registers_may_write(
    spark: Any, ottla_target: Target, tmp_path: Path, write_five: Callable[..., None], is_new: bool
) -> None:
    """The session was made in another thread."""
    topic = ottla_target.topic(1)
    session = spark.newSession() if is_new else spark

    def work() -> None:
        register(session)
        write_five(session, ottla_target, topic, tmp_path)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result(150)
    assert values(ottla_target, topic, 1) == [str(number).encode() for number in range(5)]


def test_a_thread_keeps_its_active_session_where_that_knows_the_format(spark: Any) -> None:
    """It is asked of the JVM, which has one for each thread; PySpark's own variable is one for all threads."""
    classes = spark.sparkContext._jvm.org.apache.spark.sql.classic.SparkSession

    def active_after(*sessions: Any) -> list[bool]:
        found = []
        for session in sessions:
            register(session)
            found.append(classes.getActiveSession().get().equals(session._jsparkSession))
        return found

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(active_after, spark, spark.newSession(), spark).result(60) == [True, False, True]
