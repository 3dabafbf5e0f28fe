"""The drivers must never count a refusal as work."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from bench.batches import filled, one_record
from bench.job import JobError, job_environment, run_job
from bench.jobs.fetch import check_answer, offsets_to_fetch
from bench.jobs.produce import Expected
from bench.jobs.sink import encode_fetch_answer, encode_produce_answer
from bench.settings import KIB
from bench.wire import FETCH_VERSION, PRODUCE_VERSION, RefusedError, produce_request
from tests.peers.paths import REPOSITORY

from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import encode_response
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC = "a-topic"
CHUNK = 5


def produce_answer(correlation_id: int, base_offset: int, error: ErrorCode = ErrorCode.NONE) -> bytes:
    partition = PartitionProduceResponse(index=0, error_code=int(error), base_offset=base_offset, log_start_offset=0)
    response = ProduceResponse(responses=[TopicProduceResponse(name=TOPIC, partition_responses=[partition])])
    return b"".join(encode_response(ProduceRequest, PRODUCE_VERSION, correlation_id, response))


def chunk_of_answers() -> list[bytes]:
    return [produce_answer(number, 1000 + number) for number in range(CHUNK)]


def fetch_answer(records: bytes, error: ErrorCode = ErrorCode.NONE) -> bytes:
    partition = PartitionData(partition_index=0, error_code=int(error), records=records)
    response = FetchResponse(responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=[partition])])
    return b"".join(encode_response(FetchRequest, FETCH_VERSION, 0, response))


def test_good_answers_pass_whatever_their_offsets() -> None:
    Expected(produce_answer(0, 7), TOPIC, CHUNK).verify(bytearray(b"".join(chunk_of_answers())))


@pytest.mark.parametrize("position", range(CHUNK))
@pytest.mark.parametrize("error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_one_refusal_in_a_chunk_is_found(position: int, error: ErrorCode) -> None:
    answers = chunk_of_answers()
    answers[position] = produce_answer(position, -1, error)
    with pytest.raises(RefusedError, match=str(int(error))):
        Expected(produce_answer(0, 7), TOPIC, CHUNK).verify(bytearray(b"".join(answers)))


def test_answers_out_of_order_are_found() -> None:
    answers = chunk_of_answers()
    answers[1], answers[2] = answers[2], answers[1]
    with pytest.raises(RefusedError, match="byte 7"):
        Expected(produce_answer(0, 7), TOPIC, CHUNK).verify(bytearray(b"".join(answers)))


def test_sample_that_is_a_refusal_is_not_learnt_from() -> None:
    with pytest.raises(RefusedError, match="INVALID_RECORD"):
        Expected(produce_answer(0, -1, ErrorCode.INVALID_RECORD), TOPIC, CHUNK)


def test_fetched_batches_are_counted_in_bytes() -> None:
    batch = filled(16 * KIB).data
    assert check_answer(fetch_answer(batch), 0) == len(batch)


@pytest.mark.parametrize(
    ("answer", "offset", "what"),
    [
        (fetch_answer(b""), 0, "nothing came"),
        (fetch_answer(b"", ErrorCode.OFFSET_OUT_OF_RANGE), 0, "OFFSET_OUT_OF_RANGE"),
        (fetch_answer(one_record().data), 5, "offset 5"),
        (fetch_answer(one_record().data[:-1] + b"\xff"), 0, "CRC"),
    ],
    ids=["empty", "refused", "wrong place", "damaged"],
)
def test_fetch_that_brings_something_else_is_found(answer: bytes, offset: int, what: str) -> None:
    with pytest.raises(RefusedError, match=what):
        check_answer(answer, offset)


@pytest.mark.parametrize("where", ["spread", "random", "head"])
def test_offsets_to_fetch_are_in_the_log(where: str) -> None:
    specification = {"end_offset": 1000, "offsets_per_request": 30, "positions": 8, "where": where}
    offsets = offsets_to_fetch(specification)
    assert len(offsets) == 8
    assert all(0 <= offset < 1000 for offset in offsets)
    if where == "head":
        assert offsets[-1] == 960
    if where == "spread":
        assert all(offset % 30 == 0 for offset in offsets)


def test_sink_and_driver_agree_on_sizes() -> None:
    """The sink's answers have to look like a broker's, or the limit of the driver is not one."""
    assert len(encode_produce_answer(TOPIC, 0)) == len(produce_answer(0, 0))
    assert len(encode_fetch_answer(16 * KIB, 0)) == len(fetch_answer(bytes(16 * KIB)))


def test_driver_counts_what_a_sink_answers() -> None:
    request_bytes = len(produce_request(TOPIC, 0, one_record().data, 0))
    sink = {"kind": "produce", "topic": TOPIC, "request_bytes": request_bytes, "chunk_requests": CHUNK}
    command = [sys.executable, "-m", "bench.jobs.sink", json.dumps(sink)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY, env=job_environment()) as process:
        assert process.stdout is not None
        job = {
            "port": int(process.stdout.readline()),
            "topic": TOPIC,
            "batch_bytes": 0,
            "connections": 1,
            "chunk_requests": CHUNK,
            "window_chunks": 4,
            "warm_seconds": 0,
            "seconds": 30.0,
            "limit_bytes": 100 * request_bytes,
            "verify": False,
        }
        figures = run_job("produce", job)
    assert 100 <= figures["requests"] <= figures["batches"]


def test_job_that_fails_says_why() -> None:
    log = {"topic_id": "", "request_bytes": 1, "end_offset": 10, "offsets_per_request": 1, "positions": 1}
    with pytest.raises(JobError, match="expected spread, random or head, got nowhere"):
        run_job("fetch", {**log, "where": "nowhere"})
