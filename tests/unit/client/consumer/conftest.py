"""Both twins, so that every rule about records that are handed out is tested on each."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.consumer import _native, _pure


@pytest.fixture(params=[_native, _pure], ids=["native", "pure"])
def twin(request: pytest.FixtureRequest) -> Any:
    return request.param
