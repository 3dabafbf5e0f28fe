"""The pytest plugin: brokers as fixtures.

    def test_orders(ottla_broker):
        place_order(bootstrap_servers=ottla_broker.bootstrap_servers)
        assert [record.value for record in ottla_broker.records("orders")] == [b"tea"]

pytest imports this module on every start, also where no test asks for a broker: nothing of Ottla is loaded before one
does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import TestBroker

INI_KEY = "ottla_properties"
MARKER = "ottla"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(INI_KEY, "Properties of the brokers of ottla's fixtures, one key=value a line", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(properties): properties of the broker that the fixture ottla_broker starts for a test"
    )


def _from_ini(config: pytest.Config) -> dict[str, str]:
    properties: dict[str, str] = {}
    for line in config.getini(INI_KEY):
        key, separator, value = line.partition("=")
        if not separator or not key.strip():
            raise pytest.UsageError(f"{INI_KEY}: {line}: it must look like key=value, such as num.partitions=4")
        properties[key.strip()] = value.strip()
    return properties


def _from_markers(node: pytest.Item) -> dict[str, str]:
    """Those of the module, then of the class, then of the test: the closest wins."""
    properties: dict[str, str] = {}
    for marker in reversed(list(node.iter_markers(MARKER))):
        if marker.args or set(marker.kwargs) != {"properties"}:
            raise pytest.UsageError(
                f"{node.nodeid}: the marker is used as @pytest.mark.{MARKER}(properties={{'num.partitions': '4'}})"
            )
        properties.update(marker.kwargs["properties"])
    return properties


@pytest.fixture
def ottla_broker(request: pytest.FixtureRequest) -> Iterator[TestBroker]:
    """A broker of this test's own, empty when it begins and gone when it ends."""
    from ottla.testing.broker import TestBroker

    with TestBroker(_from_ini(request.config) | _from_markers(request.node)) as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_session_broker(request: pytest.FixtureRequest) -> Iterator[TestBroker]:
    """One broker for the whole run (under xdist: for each worker); tests keep apart by topics of their own."""
    from ottla.testing.broker import TestBroker

    with TestBroker(_from_ini(request.config)) as broker:
        yield broker
