"""Every setting of the other Python clients exists here, is accepted with a warning, or is refused with an advice."""

import ctypes
import inspect
import warnings
from pathlib import Path

import aiokafka
import aiokafka.admin
import confluent_kafka
import pytest

from ottla.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig, resolve
from ottla.client.errors import ConfigError

with warnings.catch_warnings():
    # It reads its resources in a way that Python calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

KINDS: tuple[type[ClientConfig], ...] = (ProducerConfig, ConsumerConfig, AdminConfig)
# What confluent-kafka takes beside the properties of librdkafka.
OF_CONFLUENT = {
    "default.topic.config",
    "error_cb",
    "executor",
    "logger",
    "max_workers",
    "oauth_cb",
    "on_commit",
    "on_delivery",
    "stats_cb",
    "throttle_cb",
}


def _librdkafka(directory: Path) -> set[str]:
    """The properties that the library in confluent-kafka's wheel prints of itself."""
    home = Path(confluent_kafka.__file__).parent
    found = [*home.parent.glob("confluent_kafka.libs/librdkafka*"), *home.glob(".dylibs/librdkafka*")]
    if not found:
        pytest.skip("confluent-kafka has no librdkafka of its own here")
    library, libc = ctypes.CDLL(str(found[0])), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    printed = directory / "properties.md"
    file = ctypes.c_void_p(libc.fopen(str(printed).encode(), b"w"))
    library.rd_kafka_conf_properties_show(file)
    libc.fclose(file)
    rows = [line.split("|") for line in printed.read_text().splitlines()]
    return {row[0].strip() for row in rows if len(row) > 5 and row[1].strip() in ("P", "C", "*")}


def _kafka_python() -> set[str]:
    clients = (kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient)
    return {name for client in clients for name in client.DEFAULT_CONFIG}


def _aiokafka() -> set[str]:
    clients = (aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer, aiokafka.admin.AIOKafkaAdminClient)
    names = {name for client in clients for name in inspect.signature(client.__init__).parameters}
    return names - {"self", "topics"}


def test_no_name_is_answered_with_a_guess(tmp_path: Path) -> None:
    librdkafka = _librdkafka(tmp_path)
    assert {"enable.partition.eof", "queue.buffering.max.ms", "acks"} <= librdkafka
    guesses = {}
    for name in librdkafka | OF_CONFLUENT | _kafka_python() | _aiokafka():
        for kind in KINDS:
            try:
                resolve(kind, "localhost:9092", {name: "x"})
            except ConfigError as error:
                if "did you mean" in str(error) or "see the fields of" in str(error):
                    guesses[kind.__name__, name] = str(error)
    assert guesses == {}
