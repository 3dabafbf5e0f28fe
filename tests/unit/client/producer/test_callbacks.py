"""Callbacks that ask for the end of the program."""

import sys

import pytest

from ottla import Producer
from ottla.testing import TestBroker


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit])
@pytest.mark.parametrize("is_written", [True, False])
def test_sys_exit_in_a_callback_is_told_in_the_log_and_harms_nobody(
    ottla: TestBroker, caplog: pytest.LogCaptureFixture, error: type[BaseException], is_written: bool
) -> None:
    ottla.create_topic("t")

    def leave(*_: object) -> None:
        raise error

    with Producer(ottla.bootstrap_servers, linger_ms=20) as producer:
        producer.send("t", b"0").result(60)
        if not is_written:
            ottla.faults.error("PRODUCE", "INVALID_RECORD")
        deliveries = [producer.send("t", b"%d" % number, on_delivery=leave) for number in (1, 2)]
        producer.flush(20)
        assert [delivery.exception() is None for delivery in deliveries] == [is_written] * 2
        assert producer.send("t", b"3").result(60).offset >= 0
    assert caplog.text.count("a delivery callback failed") == 2


def test_sys_exit_in_an_interceptor_is_told_in_the_log_and_harms_nobody(
    ottla: TestBroker, caplog: pytest.LogCaptureFixture
) -> None:
    ottla.create_topic("t")

    class Leaving:
        def on_acknowledgement(self, *_: object) -> None:
            sys.exit(1)

    told: list[object] = []
    with Producer(ottla.bootstrap_servers, interceptor_classes=[Leaving()]) as producer:
        producer.send("t", b"0", on_delivery=lambda *came: told.append(came)).result(60)
        producer.flush(20)
    assert len(told) == 1
    assert "an interceptor failed in on_acknowledgement" in caplog.text
