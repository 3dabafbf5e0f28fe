"""A load in a process of its own, for a test that kills it. Arguments: bootstrap, topic, lake, records of a task."""

import sys

from ottla.pipelines.frame.session import spark_session
from ottla.pipelines.ingestion.lake import Lake
from ottla.pipelines.ingestion.loading import plan, run_tasks

if __name__ == "__main__":
    bootstrap, topic, directory, records = sys.argv[1:]
    spark = spark_session(master="local[2]")
    brokers, lake = {"bootstrap.servers": bootstrap}, Lake(directory)
    run_tasks(spark, brokers, list(plan(brokers, [topic], lake.state(), int(records))), lake)
