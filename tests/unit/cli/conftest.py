"""A broker, and the command that reaches it."""

from collections.abc import Iterator

import pytest
from tests.unit.cli.command_line import CommandLine

from ottla.testing import TestBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """With the usual settings; a module that needs others has its own."""
    with TestBroker() as running:
        yield running


@pytest.fixture
def ottla(broker: TestBroker) -> CommandLine:
    return CommandLine(broker.bootstrap_servers)
