"""The least a peer can do: count bytes and answer with bytes prepared beforehand.

Nothing is parsed, nothing is stored: driven by the same jobs as the brokers, it shows the limit of the driver. Runs
until its one connection is closed; prints the port it listens on.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

from bench.wire import FETCH_VERSION, LOOPBACK, PRODUCE_VERSION
from ottla.protocol.framing import encode_response
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

_TAKE_BYTES = 4 * 1024 * 1024


def encode_produce_answer(topic: str, correlation_id: int) -> bytes:
    partition = PartitionProduceResponse(index=0, base_offset=0, log_start_offset=0)
    response = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=[partition])])
    return b"".join(encode_response(ProduceRequest, PRODUCE_VERSION, correlation_id, response))


def encode_fetch_answer(size_bytes: int, correlation_id: int) -> bytes:
    partition = PartitionData(partition_index=0, records=bytes(size_bytes))
    response = FetchResponse(responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=[partition])])
    return b"".join(encode_response(FetchRequest, FETCH_VERSION, correlation_id, response))


def serve_produce(connection: socket.socket, topic: str, request_bytes: int, chunk_requests: int) -> None:
    """The driver sends one request with id 0 by itself, then chunks with ids 0, 1, ... again and again."""
    answers = [encode_produce_answer(topic, number) for number in range(chunk_requests)]
    answer_bytes = len(answers[0])
    ring = memoryview(b"".join(answers * 64))
    ring_requests = chunk_requests * 64
    scratch = bytearray(_TAKE_BYTES)
    received = connection.recv_into(scratch, request_bytes, socket.MSG_TRUNC | socket.MSG_WAITALL)
    connection.sendall(answers[0])
    received = answered = 0
    while size := connection.recv_into(scratch, _TAKE_BYTES, socket.MSG_TRUNC):
        received += size
        while answered < received // request_bytes:
            first = answered % chunk_requests
            count = min(received // request_bytes - answered, ring_requests - first)
            connection.sendall(ring[first * answer_bytes : (first + count) * answer_bytes])
            answered += count


def serve_fetch(connection: socket.socket, request_bytes: int, answer_bytes: int, positions: int) -> None:
    """One request at a time; its correlation id (after length, key and version) picks the answer in a file."""
    answers = os.memfd_create("answers")
    for number in range(positions):
        os.write(answers, encode_fetch_answer(answer_bytes, number))
    frame_bytes = os.fstat(answers).st_size // positions
    scratch = bytearray(request_bytes)
    while size := connection.recv_into(scratch):
        if size != request_bytes:
            raise ValueError(f"expected one request of {request_bytes} bytes, got {size}")
        position = struct.unpack_from(">i", scratch, 8)[0] * frame_bytes
        end = position + frame_bytes
        while position < end:
            position += os.sendfile(connection.fileno(), answers, position, end - position)


def main() -> None:
    specification = json.loads(sys.argv[1])
    with socket.create_server((LOOPBACK, 0)) as server:
        sys.stdout.write(f"{server.getsockname()[1]}\n")
        sys.stdout.flush()
        connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if specification["kind"] == "produce":
            serve_produce(
                connection, specification["topic"], specification["request_bytes"], specification["chunk_requests"]
            )
        else:
            serve_fetch(
                connection, specification["request_bytes"], specification["answer_bytes"], specification["positions"]
            )


if __name__ == "__main__":
    main()
