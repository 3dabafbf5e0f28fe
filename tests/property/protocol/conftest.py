"""Whatever is said here of the codecs holds for the compiled ones and for those that are written as text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.property.protocol.samples import ALL_MESSAGES

from ottla.protocol import _twin


def _forget_codecs() -> None:
    for cls in ALL_MESSAGES:
        cls._decoders.clear()
        cls._encoders.clear()


@pytest.fixture(scope="module", params=["compiled", "text"], autouse=True)
def codecs(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "compiled" and not _twin.IS_NATIVE:
        pytest.skip("nothing was compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_twin, "IS_NATIVE", request.param == "compiled")
        _forget_codecs()
        yield
    _forget_codecs()
