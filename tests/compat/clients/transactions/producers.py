"""Transactional producers of all client libraries, in one small vocabulary. Every call waits until it is done."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import warnings
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from pathlib import Path
from typing import IO, Any, ClassVar

import aiokafka
import confluent_kafka
from aiokafka.errors import KafkaError as AiokafkaError
from tests.compat.clients.model import TIMEOUT_SECONDS
from tests.peers.java import compile_java, java_command
from tests.peers.paths import CLIENTS39_LIBS, KAFKA_LIBS, require_libs

with warnings.catch_warnings():
    # The library reads its schemas, when it is imported, through a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

_SOURCE = Path(__file__).parents[2] / "java" / "transactions" / "TransactionDriver.java"


class Failed(Exception):
    """What the library said instead of doing what it was asked for."""


class TransactionalProducer(ABC):
    name: ClassVar[str]

    @abstractmethod
    def __init__(self, bootstrap: str, identity: str, timeout_ms: int = 60_000) -> None:
        """Initialised: whoever had the same identity before is fenced, and what it had begun is aborted."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, value: bytes) -> None: ...

    @abstractmethod
    def offset(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of partition 0 with the transaction."""

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def abort(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class ConfluentTransactions(TransactionalProducer):
    name = "confluent-kafka"

    def __init__(self, bootstrap: str, identity: str, timeout_ms: int = 60_000) -> None:
        self._bootstrap = bootstrap
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": identity,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        self._call(lambda: self._producer.init_transactions(TIMEOUT_SECONDS))

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes) -> None:
        problems: list[Any] = []
        self._call(
            lambda: self._producer.produce(
                topic, value, partition=0, on_delivery=lambda error, _: problems.append(error) if error else None
            )
        )
        if self._producer.flush(TIMEOUT_SECONDS) or problems:
            raise Failed(str(problems))

    def offset(self, group: str, topic: str, offset: int) -> None:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 0})
        try:
            metadata = consumer.consumer_group_metadata()
            places = [confluent_kafka.TopicPartition(topic, 0, offset)]
            self._call(lambda: self._producer.send_offsets_to_transaction(places, metadata, TIMEOUT_SECONDS))
        finally:
            consumer.close()

    def commit(self) -> None:
        self._call(lambda: self._producer.commit_transaction(TIMEOUT_SECONDS))

    def abort(self) -> None:
        self._call(lambda: self._producer.abort_transaction(TIMEOUT_SECONDS))

    def close(self) -> None:
        self._producer.purge()

    @staticmethod
    def _call(call: Any) -> None:
        try:
            call()
        except confluent_kafka.KafkaException as problem:
            raise Failed(str(problem)) from problem


class KafkaPythonTransactions(TransactionalProducer):
    name = "kafka-python"

    def __init__(self, bootstrap: str, identity: str, timeout_ms: int = 60_000) -> None:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=identity, transaction_timeout_ms=timeout_ms, linger_ms=0
        )
        self._call(self._producer.init_transactions)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes) -> None:
        self._call(lambda: self._producer.send(topic, value, partition=0).get(timeout=TIMEOUT_SECONDS))

    def offset(self, group: str, topic: str, offset: int) -> None:
        places = {kafka.TopicPartition(topic, 0): kafka.OffsetAndMetadata(offset, "", -1)}
        self._call(lambda: self._producer.send_offsets_to_transaction(places, group))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=1)

    @staticmethod
    def _call(call: Any) -> None:
        try:
            call()
        except kafka.errors.KafkaError as problem:
            raise Failed(f"{type(problem).__name__} {problem}") from problem


class AiokafkaTransactions(TransactionalProducer):
    """Its loop turns while a call is made, and not between calls."""

    name = "aiokafka"

    def __init__(self, bootstrap: str, identity: str, timeout_ms: int = 60_000) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        self._loop = asyncio.new_event_loop()
        self._wait(self._start(bootstrap, identity, timeout_ms))

    async def _start(self, bootstrap: str, identity: str, timeout_ms: int) -> None:
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=identity, transaction_timeout_ms=timeout_ms, linger_ms=0
        )
        await self._producer.start()

    def begin(self) -> None:
        self._wait(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes) -> None:
        self._wait(self._producer.send_and_wait(topic, value, partition=0))

    def offset(self, group: str, topic: str, offset: int) -> None:
        self._wait(self._producer.send_offsets_to_transaction({aiokafka.TopicPartition(topic, 0): offset}, group))

    def commit(self) -> None:
        self._wait(self._producer.commit_transaction())

    def abort(self) -> None:
        self._wait(self._producer.abort_transaction())

    def close(self) -> None:
        self._loop.run_until_complete(self._producer.stop())
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            self._loop.run_until_complete(asyncio.wait_for(work, TIMEOUT_SECONDS))
        except AiokafkaError as problem:
            raise Failed(f"{type(problem).__name__} {problem}") from problem


class JavaTransactions(TransactionalProducer):
    """One JVM with one producer, driven by lines."""

    libs: ClassVar[Path]
    package: ClassVar[str]

    def __init__(self, bootstrap: str, identity: str, timeout_ms: int = 60_000) -> None:
        libs = require_libs(self.libs, self.package)
        command = java_command(
            "TransactionDriver", [bootstrap, identity, str(timeout_ms)], libs, compile_java([_SOURCE], libs)
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._read()

    def begin(self) -> None:
        self._ask("begin")

    def send(self, topic: str, value: bytes) -> None:
        self._ask("send", topic, value.decode())

    def offset(self, group: str, topic: str, offset: int) -> None:
        self._ask("offset", group, topic, offset)

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            self._stream(stream).close()

    def _ask(self, *fields: object) -> None:
        commands = self._stream(self._process.stdin)
        commands.write("\t".join(map(str, fields)) + "\n")
        commands.flush()
        self._read()

    def _read(self) -> None:
        answer = self._stream(self._process.stdout).readline().rstrip("\n")
        if answer != "ok":
            raise Failed(answer)

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


class Java39Transactions(JavaTransactions):
    name = "kafka-clients 3.9"
    libs, package = CLIENTS39_LIBS, "clients39"


class Java43Transactions(JavaTransactions):
    name = "kafka-clients 4.3"
    libs, package = KAFKA_LIBS, "kafka"
