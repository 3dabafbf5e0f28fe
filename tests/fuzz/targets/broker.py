"""Whole connections against a whole broker: one input is what one client sends from connecting to leaving.

What must hold: nothing is reported as an error, every answer can be read and belongs to its request, logs stay whole
(offsets rise, CRCs fit), and a restart finds the same records. A broker serves several inputs, so that one input meets
what another left behind.
"""

import contextlib
import random
import struct
from collections.abc import Hashable, Iterable

from tests.fuzz.frames import PREFIX_BYTES, FrameMutator, decode, split
from tests.fuzz.generator import RequestMaker
from tests.fuzz.seeds import deleted_by_id, every_api, stories
from tests.fuzz.target import Finding
from tests.fuzz.targets.broker_rig import TOPICS, BrokerRig

from ottla.broker.dispatch import registered_handlers
from ottla.log.files import TopicPartition
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import ErrorCode, MalformedMessage
from ottla.protocol.framing import decode_head, decode_response
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.registry import request_class
from ottla.protocol.schema import Struct
from ottla.records import inspect_batches

INPUTS_OF_ONE_BROKER = 48
MOST_TOPICS = 16
READ_BYTES = 1 << 20
ERROR_FIELDS = ("error_code", "partition_error_code")

Contents = dict[TopicPartition, tuple[int, int, bytes]]


class BrokerTarget:
    name = "broker"
    longest_bytes = 8192
    format_share = 0.6

    def __init__(self) -> None:
        self._rig = BrokerRig()
        self._inputs: list[bytes] = []
        self.topic_ids = self._rig.topic_ids()

    def seeds(self) -> list[bytes]:
        return [*stories(), *every_api(_served(), self.topic_ids), deleted_by_id(self.topic_ids)]

    def history(self) -> list[bytes]:
        return list(self._inputs)

    def forget(self) -> None:
        # After a finding the broker may be in any state; what its end says then is no news.
        with contextlib.suppress(Exception):
            self._rig.stop()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._rig = BrokerRig()
        self._inputs = []

    def mutate(self, dice: random.Random, data: bytes, other: bytes) -> bytes | None:
        return FrameMutator(dice, RequestMaker(dice, _served(), self.topic_ids)).mutate(data, other)

    def run(self, data: bytes) -> Iterable[Hashable]:
        rig = self._rig
        self._inputs.append(data)
        answer = rig.converse(data)
        features = self._check_answers(data, answer)
        names = rig.broker.image.topics.keys()
        is_over = len(self._inputs) >= INPUTS_OF_ONE_BROKER
        if is_over or not names >= set(TOPICS) or len(names) > MOST_TOPICS:
            self.check_logs()
            rig.stop()
            rig.complaints.raise_first()
            self._begin_anew()
        return features

    # Answers

    def _check_answers(self, data: bytes, answer: bytes) -> set[Hashable]:
        """Answers come in the order of their requests."""
        asked = _asked(split(data)[: self._rig.door.dispatched])
        features: set[Hashable] = set()
        before = -1
        for frame in split(answer):
            (size,) = struct.unpack_from(">i", frame) if len(frame) >= PREFIX_BYTES else (-1,)
            if size != len(frame) - PREFIX_BYTES:
                break
            (correlation_id,) = struct.unpack_from(">i", frame, PREFIX_BYTES)
            if not asked:
                raise Finding("an answer to nothing that was asked")
            api_key, version, expected_id = asked.pop(0)
            if correlation_id != expected_id:
                raise Finding(f"an answer to another request than {ApiKey(api_key).name}, whose turn it was")
            errors = self._errors(api_key, version, memoryview(frame)[PREFIX_BYTES:])
            features |= {(api_key, errors), (before, api_key, errors <= {ErrorCode.NONE})}
            before = api_key
        return features

    @staticmethod
    def _errors(api_key: int, version: int, frame: memoryview) -> frozenset[int]:
        cls = request_class(api_key)
        assert cls is not None
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            version = 0
        try:
            _, response = decode_response(cls, version, frame)
        except MalformedMessage as error:
            raise Finding(f"the answer of {cls.__name__} v{version} cannot be read") from error
        # UNKNOWN_SERVER_ERROR is Kafka's answer to some requests, and ours; what nobody expected is in the log.
        return frozenset(_errors_in(response))

    # Logs

    def check_logs(self) -> None:
        """Read every log, restart the broker, and expect the same."""
        rig = self._rig
        before = self._contents()
        rig.restart()
        rig.complaints.raise_first()
        after = self._contents()
        if before != after:
            raise Finding(
                f"a restart changed {sorted(key for key in before | after if before.get(key) != after.get(key))}"
            )

    def _contents(self) -> Contents:
        contents: Contents = {}
        for log in self._rig.broker.logs.all_logs():
            pieces: list[bytes] = []
            offset = log.log_start_offset
            while (found := log.read(offset, READ_BYTES, up_to_offset=log.log_end_offset)) is not None:
                data = bytes(found.read())
                pieces.append(data)
                for header in inspect_batches(data):
                    if header.last_offset < offset:
                        raise Finding(f"offset {header.last_offset} follows {offset} in {log}")
                    offset = header.last_offset + 1
            if offset > log.log_end_offset:
                raise Finding(f"{log} ends at {log.log_end_offset} and holds {offset}")
            contents[log.topic_partition] = (log.log_start_offset, log.log_end_offset, b"".join(pieces))
        return contents


def _served() -> list[ApiKey]:
    return [ApiKey(key) for key in registered_handlers()]


def _asked(frames: list[bytes]) -> list[tuple[int, int, int]]:
    """API, version and correlation id of each request that is to be answered, up to the first that has no head."""
    asked: list[tuple[int, int, int]] = []
    for frame in frames:
        decoded = decode(frame)
        if decoded is not None and isinstance(decoded[0], ProduceRequest) and decoded[0].acks == 0:
            continue
        try:
            api_key, version, correlation_id, _ = decode_head(memoryview(frame)[PREFIX_BYTES:])
        except MalformedMessage:
            break
        asked.append((api_key, version, correlation_id))
    return asked


def _errors_in(struct_: Struct) -> Iterable[int]:
    for field in struct_.FIELDS:
        value = getattr(struct_, field.name, None)
        if field.name in ERROR_FIELDS and isinstance(value, int):
            yield value
        elif isinstance(value, Struct):
            yield from _errors_in(value)
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            for part in value:
                yield from _errors_in(part)
