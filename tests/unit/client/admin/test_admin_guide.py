"""docs/ADMIN.md: every example is run, in order, on one broker."""

import asyncio
import re
import textwrap
from typing import Any

import pytest
from tests.peers.paths import REPOSITORY

from ottla.client.admin import AsyncAdmin
from ottla.testing import TestBroker

TEXT = (REPOSITORY / "docs" / "ADMIN.md").read_text(encoding="utf-8")
WHOLE, *PARTS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)

# What each part prints, a line an entry; the times and ids that differ from run to run are in none of them.
PRINTED = [
    ["['returns'] ['not a name']", "1", "INVALID_TOPIC_EXCEPTION"],
    ["3600000", "0 1 (1,)", "1 1 (1,)", "0 of 1 gone", "1 of 1 gone"],
    ["86400000 DYNAMIC_TOPIC_CONFIG"],
    ["0 0", "None"],
    ["0", "billing classic", "Empty []"],
    ["1 [1]", "True True", "{QuotaEntity(user='alice', client_id=None, ip=None): {'producer_byte_rate': 1000000.0}}"],
    ["[]", "()", "True"],
]


def test_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    with TestBroker() as broker:
        exec(WHOLE.replace("localhost:9092", broker.bootstrap_servers), {})
        assert capsys.readouterr().out.splitlines() == ["bills 1", "orders 3"]
        assert len(PARTS) == len(PRINTED)
        for part, printed in zip(PARTS, PRINTED, strict=True):
            asyncio.run(_run(part, broker.bootstrap_servers))
            shown = capsys.readouterr().out.splitlines()
            assert shown == printed, part


async def _run(part: str, bootstrap_servers: str) -> None:
    """A part of the guide as the body of an `async with`: all that it needs is the admin client."""
    names: dict[str, Any] = {}
    exec(f"async def body(admin):\n{textwrap.indent(part, '    ')}", names)
    async with AsyncAdmin(bootstrap_servers) as admin:
        await names["body"](admin)
