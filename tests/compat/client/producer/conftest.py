from __future__ import annotations

import pytest
from tests.compat.client.conftest import Either
from tests.compat.client.producer.reading import Place


@pytest.fixture
def place(either: Either) -> Place:
    """A broker, and somebody who makes topics and reads them."""
    return Place(either.kind, either.bootstrap)
