"""Options: what is refused, and in which words. No broker is asked for any of this."""

from __future__ import annotations

import pytest

from ottla.client.errors import ConfigError
from ottla.client.types import TopicPartition
from ottla.spark.datasource import OttlaDataSource
from ottla.spark.source.columns import connector_schema
from ottla.spark.source.limits import AtOffsets, AtTime, AtTimes, Earliest, Latest
from ottla.spark.source.option_values import phase
from ottla.spark.source.options import SourceOptions, read_options

GOOD = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders"}
SCHEMA = connector_schema(has_headers=False)


def options_of(given: dict[str, str] | None = None, *, is_stream: bool = False) -> SourceOptions:
    return read_options({**GOOD, **(given or {})}, is_stream=is_stream)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"assign": '{"orders":[0]}'}, "exactly one of the options subscribe, assign, subscribePattern"),
        ({"subscribe": " , "}, "option subscribe is ' , ': name at least one topic"),
        ({"startingOffsets": "erliest"}, "option startingOffsets is 'erliest': expected JSON such as"),
        ({"startingOffsets": '{"orders":{"0":"five"}}'}, "option startingOffsets is"),
        ({"startingOffsets": '{"orders":{"0":-7}}'}, "-2 is earliest, -1 latest"),
        ({"startingOffsets": "latest"}, "option startingOffsets is latest: a batch query cannot begin behind"),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, "option startingOffsets has -1 .latest. for orders-0"),
        ({"endingOffsets": "earliest"}, "option endingOffsets is earliest"),
        ({"endingOffsets": '{"orders":{"0":-2}}'}, "option endingOffsets has -2 .earliest. for orders-0"),
        (
            {"startingOffsets": '{"orders":{"0":9}}', "endingOffsets": '{"orders":{"0":8}}'},
            "option startingOffsets has 9 for orders-0, behind its end at 8",
        ),
        (
            {"startingOffsets": '{"orders":{"0":1}}', "endingOffsets": '{"orders":{"1":8}}'},
            "name different partitions: orders-0, orders-1",
        ),
        ({"startingTimestamp": "yesterday"}, "option startingTimestamp is 'yesterday': expected a whole number"),
        ({"endingOffsetsByTimestamp": "[]"}, "option endingOffsetsByTimestamp is"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "there are error and latest"),
        ({"minPartitions": "0"}, "option minPartitions is 0: it is at least 1"),
        ({"maxRecordsPerPartition": "-1"}, "option maxRecordsPerPartition is -1"),
        ({"minRecordsPerPartition": "-1"}, "option minRecordsPerPartition is -1: it is at least 0"),
        ({"rereadBytes": "8MB"}, "option rereadBytes is '8MB': expected a whole number"),
        ({"minRecordPerPartition": "5"}, "no option 'minRecordPerPartition': did you mean 'minRecordsPerPartition'"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "option minOffsetsPerTrigger is 5, more than"),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay is 'soon': expected a time such as 15m"),
        ({"triggerPhase": "400ms"}, "option triggerPhase is '400ms': expected the time behind the trigger's, such as"),
        ({"triggerPhase": "2s of 2s"}, "option triggerPhase is '2s of 2s'"),
        ({"triggerPhase": "400ms of 2 moons"}, "option triggerPhase is '400ms of 2 moons'"),
        ({"failOnDataLoss": "maybe"}, "option failOnDataLoss is 'maybe': expected true or false"),
        ({"valueFormat": "avro"}, "option valueFormat is 'avro': there is json"),
        ({"offsetsGroup": " "}, "option offsetsGroup is empty"),
        ({"startingOffset": "earliest"}, "no option 'startingOffset': did you mean 'startingOffsets'"),
        ({"maxOffsetPerTrigger": "5"}, "no option 'maxOffsetPerTrigger': did you mean 'maxOffsetsPerTrigger'"),
        ({"kafka.auto.offset.reset": "earliest"}, "option kafka.auto.offset.reset is not supported: set startingOff"),
        ({"kafka.fetch.min.bytes": "many"}, "kafka.fetch.min.bytes"),
        ({"kafka.bootstrap.servers": ""}, "option kafka.bootstrap.servers is missing"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        OttlaDataSource({**GOOD, **given}).reader(SCHEMA)


@pytest.mark.parametrize("name", ["subscribePattern", "assign"])
def test_values_that_name_nothing_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"option {name} is"):
        read_options({"kafka.bootstrap.servers": "localhost:1", name: "["}, is_stream=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(ConfigError, match=f"option {name} is for batch queries"):
        options_of({name: "latest"}, is_stream=True)


def test_topics_are_named_with_commas_between() -> None:
    assert options_of({"subscribe": " first , second,"}).subscription.topics == ("first", "second")


def test_names_have_no_case_and_those_of_others_are_left_alone() -> None:
    options = options_of({"STARTINGOFFSETS": "Earliest", "KAFKA.Fetch.Max.Bytes": "100", "path": "x", "my.own": "y"})
    assert options.starting == Earliest()
    assert options.settings["fetch.max.bytes"] == "100"


def test_defaults_and_what_comes_first() -> None:
    assert (options_of().starting, options_of().ending) == (Earliest(), Latest())
    assert options_of(is_stream=True).starting == Latest()
    offsets, times = '{"orders":{"0":3}}', '{"orders":{"0":1000}}'
    assert options_of({"startingOffsets": offsets}).starting == AtOffsets({TopicPartition("orders", 0): 3})
    by_partition = {"startingOffsets": offsets, "startingOffsetsByTimestamp": times}
    assert options_of(by_partition).starting == AtTimes({TopicPartition("orders", 0): 1000})
    assert options_of({**by_partition, "startingTimestamp": "7"}).starting == AtTime(7)


def test_a_group_is_published_to_only_where_one_is_named() -> None:
    assert options_of().offsets_group is None
    carried = options_of({"kafka.group.id": "carried"})
    assert (carried.offsets_group, carried.is_group_asked_for) == ("carried", False)
    asked = options_of({"kafka.group.id": "carried", "offsetsGroup": "asked"})
    assert (asked.offsets_group, asked.is_group_asked_for) == ("asked", True)
    assert "group.id" not in asked.settings


@pytest.mark.parametrize(
    ("now", "wait"), [(100.0, 0.4), (100.1, 0.3), (100.4, 0.0), (101.9, 0.0), (102.0, 0.4), (102.399, 0.001)]
)
def test_a_phase_begins_behind_the_moment_of_the_trigger(now: float, wait: float) -> None:
    found = phase({"triggerPhase": "400ms of 2s"}, "triggerPhase")
    assert found is not None
    assert found.wait_seconds(now) == pytest.approx(wait, abs=1e-6)
