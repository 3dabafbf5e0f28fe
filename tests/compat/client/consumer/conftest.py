from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.client.conftest import Either
from tests.compat.client.consumer.writing import Writer


@pytest.fixture(scope="session")
def writer(either: Either) -> Iterator[Writer]:
    """A broker, and somebody who writes to it."""
    writer = Writer(either.bootstrap)
    yield writer
    writer.close()
