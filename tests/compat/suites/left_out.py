"""Tests of a suite that are not run, each with its reason.

A TOML file beside the suite has two kinds of entries. One with `apis` waits for the broker: its tests run as soon as
ApiVersions lists all of them, so the list needs no care when an API is added. One with `reason` is never run.

    [[left_out]]
    apis = ["ElectLeaders"]
    tests = ["test_admin.py::test_elect_leaders"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.wire_client import WireClient

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


@dataclass(frozen=True)
class LeftOut:
    tests: tuple[str, ...]
    apis: tuple[ApiKey, ...] = ()
    reason: str = ""

    def why(self, served: frozenset[int]) -> str | None:
        """Why these tests are not run on a broker that serves these APIs; None when they are."""
        if self.reason:
            return self.reason
        missing = [api for api in self.apis if api not in served]
        return f"API not served: {', '.join(map(words, missing))}" if missing else None


def words(api: ApiKey) -> str:
    """Kafka's own spelling: ELECT_LEADERS is ElectLeaders."""
    return "".join(part.capitalize() for part in api.name.split("_"))


def read_left_out(path: Path) -> list[LeftOut]:
    entries: list[LeftOut] = []
    for entry in tomllib.loads(path.read_text())["left_out"]:
        apis = tuple(ApiKey[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()] for name in entry.get("apis", ()))
        left_out = LeftOut(tuple(entry["tests"]), apis, entry.get("reason", ""))
        if bool(left_out.apis) == bool(left_out.reason):
            raise ValueError(f"{path}: expected either apis or a reason for {entry['tests'][0]}")
        entries.append(left_out)
    return entries


def base_name(test: str) -> str:
    """The name without its parameters: an entry stands for all of them."""
    return test.partition("[")[0]


def reasons(names: Sequence[str], entries: Iterable[LeftOut], served: frozenset[int]) -> dict[str, str]:
    """Why each test that is not run is not run. An entry that fits no test is an error: it would hide nothing."""
    found: dict[str, str] = {}
    for entry in entries:
        why = entry.why(served)
        for test in entry.tests:
            fitting = [name for name in names if test in (name, base_name(name))]
            if not fitting:
                raise ValueError(f"the suite has no test {test}: take it off the list")
            if why is not None:
                found |= dict.fromkeys(fitting, why)
    return found


def served_apis(port: int) -> frozenset[int]:
    with WireClient(port) as client:
        answer = client.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
    return frozenset(api.api_key for api in answer.api_keys)
