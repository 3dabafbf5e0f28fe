"""kcat, as a command: records go in as lines and come out as JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import groupby

from tests.compat.clients.adapters.confluent import ConfluentClient
from tests.compat.clients.model import TIMEOUT_SECONDS, Acks, Client, Codec, Header, Message, Refused, Stored, When
from tests.peers.paths import PeerMissing

_MESSAGE_TOO_LARGE = 10
_EARLIEST, _LATEST = -2, -1
_KEY_DELIMITER = "\t"


def kcat(arguments: list[str], stdin: bytes = b"") -> bytes:
    """Run kcat to its end and answer what it printed."""
    executable = shutil.which("kcat")
    if executable is None:
        raise PeerMissing("kcat is not on the PATH: run `python -m tests.peers.install kcat`")
    done = subprocess.run(
        [executable, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
    )
    if done.returncode != 0:
        text = done.stderr.decode(errors="replace")
        raise Refused(_MESSAGE_TOO_LARGE if "Message size too large" in text else -1, text)
    return done.stdout


class KcatClient(Client):
    """kcat has no admin calls: topics with settings are made by another client, the rest by using them.

    It takes headers for a whole run, no timestamps, and an empty key or value means null.
    """

    name = "kcat"
    reports_offsets = False
    rich_messages = (
        Message(b"plain"),
        Message(b"keyed", key=b"k1"),
        Message(None, key=b"tombstone"),
        Message("čaj ☕".encode(), key="klíč".encode()),
        Message(b"one header", headers=(("name", b"value"),)),
        Message(b"many", headers=(("a", b"1"), ("b", b"2"), ("a", b"3"))),
    )

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replication: int = 1
    ) -> None:
        ConfluentClient(self.bootstrap).create_topic(topic, partitions, configs, replication)

    def produce(
        self,
        topic: str,
        partition: int,
        messages: Sequence[Message],
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        settings = {
            "compression.codec": codec,
            "acks": acks,
            "enable.idempotence": str(idempotent).lower(),
            "linger.ms": "20",
            "message.timeout.ms": str(int(TIMEOUT_SECONDS * 1000)),
        }
        place = ["-b", self.bootstrap, "-P", "-t", topic, "-p", str(partition), "-Z", "-K", _KEY_DELIMITER]
        options = [part for key, value in settings.items() for part in ("-X", f"{key}={value}")]
        for headers, group in groupby(messages, key=lambda message: message.headers):
            lines = [(m.key or b"") + _KEY_DELIMITER.encode() + (m.value or b"") + b"\n" for m in group]
            flags = [part for name, value in headers for part in ("-H", f"{name}={(value or b'').decode()}")]
            kcat([*place, *options, *flags], b"".join(lines))
        return []

    def consume(self, topic: str, partition: int, start: int, count: int) -> list[Stored]:
        place = ["-b", self.bootstrap, "-C", "-t", topic, "-p", str(partition), "-o", str(start), "-c", str(count)]
        output = kcat([*place, "-q", "-J", "-X", "auto.offset.reset=earliest"])
        return [_stored(line) for line in output.splitlines()]

    def offset_at(self, topic: str, partition: int, when: When) -> int | None:
        asked = {"earliest": _EARLIEST, "latest": _LATEST}.get(str(when), when)
        output = kcat(["-b", self.bootstrap, "-Q", "-t", f"{topic}:{partition}:{asked}"])
        offset = int(output.decode().rsplit("offset", 1)[1])
        return offset if offset >= 0 else None


def _stored(line: bytes) -> Stored:
    record = json.loads(line)
    flat: list[str] = record.get("headers", [])
    headers: tuple[Header, ...] = tuple(
        (name, value.encode()) for name, value in zip(flat[::2], flat[1::2], strict=True)
    )
    return Stored(record["offset"], record["ts"], _encoded(record["key"]), _encoded(record["payload"]), headers)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
