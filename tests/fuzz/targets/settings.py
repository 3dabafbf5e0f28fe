"""A `server.properties` file. What must hold: it is read into settings, or refused with the words for its author."""

import logging
from collections.abc import Hashable, Iterable

from tests.fuzz.target import PlainTarget

from ottla.broker.config import BrokerConfig, ConfigError
from ottla.runtime.properties import parse_properties

SEEDS = [
    b"log.dirs=/a,/b\nnode.id=1\n# comment\nlisteners=PLAINTEXT://127.0.0.1:9092,OTHER://:0\n",
    b"log.dirs=/a\nlistener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\nlisteners=A://:1,B://[::1]:2\n",
    b"log.dirs=/a\nadvertised.listeners=PLAINTEXT://host:9092\nottla.http.listeners=http://:9404\n",
    b"log.dirs=/a\nmax.connections.per.ip.overrides=127.0.0.1:5,host:7\nbroker.rack = a b \\\n  c\n",
    b"log.dirs=/a\nlog.retention.ms=-1\nlog.roll.hours : 1\ncompression.type zstd\nlog.cleaner.enable=false\n",
    b"log.dirs=/\\u00e4\nlog.cleanup.policy=compact,delete\nnum.partitions=x\n",
]


class SettingsTarget(PlainTarget):
    name = "settings"
    longest_bytes = 1024

    def __init__(self) -> None:
        logging.getLogger("ottla").propagate = False

    def seeds(self) -> list[bytes]:
        return SEEDS

    def run(self, data: bytes) -> Iterable[Hashable]:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return ()
        try:
            config = BrokerConfig.from_properties(parse_properties(text))
        except ConfigError:
            return ()
        BrokerConfig.from_properties(config.properties)
        return ()
