"""A broker process that is killed: what was acknowledged is there, and visible, when it is back."""

from pathlib import Path

from tests.peers.ottla import OttlaBroker
from tests.unit.broker.api.questions import batch, create_topic, fetch, produce, values
from tests.wire_client import WireClient

from ottla.protocol.errors import ErrorCode

TOPICS = {
    "plain": {},
    "flushed": {"flush.messages": "1"},
    "flushed-before-ack": {"ottla.flush.before.ack": "true"},
    "rolled": {"segment.index.bytes": "16", "index.interval.bytes": "0"},
}


def test_everything_is_visible_again_at_once(tmp_path: Path) -> None:
    broker = OttlaBroker(tmp_path).start()
    try:
        assert broker.port is not None
        with WireClient(broker.port) as client:
            for topic, configs in TOPICS.items():
                create_topic(client, topic, configs=configs)
                for number in range(10):
                    assert produce(client, topic, batch(b"%d" % number)).error_code == ErrorCode.NONE
        broker.kill()
        broker.start()
        with WireClient(broker.port) as client:
            for topic in TOPICS:
                found: list[bytes | None] = []
                while new := values(fetch(client, topic, len(found))):
                    found += new
                assert found == [b"%d" % number for number in range(10)], topic
                assert fetch(client, topic, 0).high_watermark == 10
        assert broker.stop() == 0
    finally:
        broker.kill()
