"""A broker in the process, for tests of what a producer does when it misbehaves."""

from collections.abc import Iterator

import pytest

from ottla.testing import TestBroker


@pytest.fixture
def ottla() -> Iterator[TestBroker]:
    with TestBroker({"auto.create.topics.enable": "false"}) as broker:
        yield broker
