"""What the process beside a streaming query loads. Spark starts it for every run, and nothing is read before it is
ready: what is not needed to ask for offsets stays out of it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.spark.conftest import Target
from tests.spark.source.reading import numbered, write

pytestmark = pytest.mark.timeout(180)

NOT_NEEDED = ("ottla.client.admin.admin", "ottla.client.consumer", "ottla.client.producer", "urllib.request")
BESIDE_THE_QUERY = """
import sys
from ottla.spark.datasource import OttlaDataSource
from pyspark.sql.streaming.datasource import ReadAllAvailable

bootstrap, topic, *not_needed = sys.argv[1:]
source = OttlaDataSource({"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"})
stream = source.streamReader(source.schema())
first = stream.initialOffset()
last = stream.latestOffset(first, ReadAllAvailable())
print(len(stream.partitions(first, last)), [name for name in not_needed if name in sys.modules])
stream.stop()
"""


def test_offsets_are_asked_for_with_little_code(ottla_target: Target) -> None:
    topic = ottla_target.topic(1)
    write(ottla_target, topic, numbered(10))
    command = [sys.executable, "-c", BESIDE_THE_QUERY, ottla_target.bootstrap, topic, *NOT_NEEDED]
    ran = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ran.stdout.strip() == "1 []", ran.stderr
