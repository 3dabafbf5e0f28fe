"""Commits of offsets, and of transactions, over several connections; what a broker refuses ends the job.

`commits`: each connection keeps a window of OffsetCommit requests of one partition on the way. `groups`: one commit
for each of many groups. `transactions`: each connection is a producer whose transactions have one record; a transaction
is a Produce and an EndTxn, each answered before the next is sent.
"""

from __future__ import annotations

import asyncio
import struct
import time
from typing import Any

from bench.batches import RECORD_BYTES
from bench.job import Figures, Specification, job_main
from bench.wire import CLIENT_ID, LOOPBACK, check
from ottla.protocol.errors import ErrorCode
from ottla.protocol.framing import decode_response, encode_request
from ottla.protocol.message import Request
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records import Record, build_batch

COMMIT_VERSION, INIT_VERSION, PRODUCE_VERSION, END_VERSION = 9, 5, 12, 5
_TIMESTAMP_MS = 1_750_000_000_000
_NOT_YET = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


class Line:
    """A connection; requests may be sent before earlier ones are answered."""

    async def open(self, port: int) -> Line:
        self._reader, self.writer = await asyncio.open_connection(LOOPBACK, port)
        return self

    async def ask(self, request: Request, version: int) -> Any:
        self.writer.write(encode_request(request, version, 1, CLIENT_ID))
        return await self.answer(type(request), version)

    async def answer(self, request: type[Request], version: int) -> Any:
        return decode_response(request, version, await self.frame())[1]

    async def frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return await self._reader.readexactly(size)


def commit(group: str, topic: str, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])])


def check_commit(frame: bytes) -> None:
    answer: Any = decode_response(OffsetCommitRequest, COMMIT_VERSION, frame)[1]
    check(answer.topics[0].partitions[0].error_code, "committing an offset")


async def commits(specification: Specification, number: int) -> int:
    """How many were answered before the time was over; a window of them was sent before each answer was read."""
    line = await Line().open(int(specification["port"]))
    request = commit(f"{specification['group']}-{number}", str(specification["topic"]), 1)
    frame = encode_request(request, COMMIT_VERSION, 1, CLIENT_ID)
    window = int(specification["window"])
    line.writer.write(frame)
    check_commit(await line.frame())
    line.writer.write(frame * window)
    count = 0
    deadline = time.perf_counter() + float(specification["seconds"])
    while time.perf_counter() < deadline:
        answer = await line.frame()
        if count % 256 == 0:
            check_commit(answer)
        count += 1
        line.writer.write(frame)
    line.writer.close()
    return count


async def groups(specification: Specification, number: int) -> int:
    """One commit for each group that falls to this connection."""
    line = await Line().open(int(specification["port"]))
    names = [
        f"{specification['group']}-{index}"
        for index in range(number, int(specification["groups"]), int(specification["connections"]))
    ]
    window = int(specification["window"])
    for first in range(0, len(names), window):
        some = names[first : first + window]
        frames = [
            encode_request(commit(name, str(specification["topic"]), 1), COMMIT_VERSION, 1, CLIENT_ID) for name in some
        ]
        line.writer.write(b"".join(frames))
        for _ in some:
            check_commit(await line.frame())
    line.writer.close()
    return len(names)


async def transactions(specification: Specification, number: int) -> int:
    line = await Line().open(int(specification["port"]))
    identity, topic = f"{specification['group']}-{number}", str(specification["topic"])
    producer_id, epoch = await initialised(line, identity)
    count = sequence = 0
    deadline = time.perf_counter() + float(specification["seconds"])
    while time.perf_counter() < deadline:
        await write_one(line, one_record(identity, topic, number, producer_id, epoch, sequence))
        request = EndTxnRequest(
            transactional_id=identity, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        ended = await line.ask(request, END_VERSION)
        check(ended.error_code, "ending a transaction")
        producer_id, epoch, sequence = ended.producer_id, ended.producer_epoch, 0
        count += 1
    line.writer.close()
    return count


async def write_one(line: Line, request: ProduceRequest) -> None:
    """Again and again while the last transaction is still ending, as clients do, with a shorter pause than theirs."""
    while True:
        written = await line.ask(request, PRODUCE_VERSION)
        code = written.responses[0].partition_responses[0].error_code
        if code != ErrorCode.CONCURRENT_TRANSACTIONS:
            check(code, "producing in a transaction")
            return
        await asyncio.sleep(0.001)


async def initialised(line: Line, identity: str) -> tuple[int, int]:
    request = InitProducerIdRequest(transactional_id=identity, transaction_timeout_ms=60_000)
    while True:
        answer = await line.ask(request, INIT_VERSION)
        if answer.error_code not in _NOT_YET:
            check(answer.error_code, "initialising a producer")
            return answer.producer_id, answer.producer_epoch
        await asyncio.sleep(0.01)


def one_record(
    identity: str, topic: str, partition: int, producer_id: int, epoch: int, sequence: int
) -> ProduceRequest:
    record = Record(offset=0, timestamp=_TIMESTAMP_MS, key=None, value=bytes(RECORD_BYTES), headers=[])
    batch = build_batch(
        [record], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True
    )
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]
    return ProduceRequest(transactional_id=identity, acks=-1, timeout_ms=30_000, topic_data=data)


_KINDS = {"commits": commits, "groups": groups, "transactions": transactions}


async def measure(specification: Specification) -> Figures:
    kind = _KINDS[str(specification["what"])]
    started = time.perf_counter()
    counts = await asyncio.gather(*(kind(specification, number) for number in range(int(specification["connections"]))))
    seconds = time.perf_counter() - started
    return {"count": sum(counts), "seconds": seconds, "rate": sum(counts) / seconds}


def work(specification: Specification) -> Figures:
    return asyncio.run(measure(specification))


if __name__ == "__main__":
    job_main(work)
