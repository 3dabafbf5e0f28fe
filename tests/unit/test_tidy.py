"""Style and architecture as tests: what a reader may rely on without looking."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "ottla"
PYTHON_FILES = sorted(
    path
    for folder in ("src", "tests", "bench", "checkout")
    for path in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in path.parts
)
FILE_LINES = 420
FUNCTION_LINES = 60

# The rooms that a simulation must be able to run from one seed, and what they may not reach for.
DETERMINISTIC = (
    "protocol",
    "records",
    "log",
    "cluster",
    "replication",
    "ledger",
    "groups",
    "transactions",
    "broker/api",
    "client/membership",
    "client/admin",
)
ADAPTERS = ("broker/server.py", "broker/connection.py", "broker/loops.py", "broker/buffers.py", "broker/outbox.py")
FORBIDDEN_MODULES = {"time", "random", "uuid", "socket", "threading", "secrets", "tempfile", "shutil", "subprocess"}
FORBIDDEN_CALLS = {"open", "input", "print"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def deterministic_files() -> Iterator[Path]:
    for room in DETERMINISTIC:
        yield from sorted((SOURCE / room).rglob("*.py"))
    yield SOURCE / "coordination" / "store.py"
    yield SOURCE / "broker" / "dispatch.py"
    yield SOURCE / "broker" / "fetch_sessions.py"
    yield from (path for path in (SOURCE / "broker" / "quotas").glob("*.py") if path.name != "enforcement.py")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", sorted(deterministic_files()), ids=relative)
def test_the_core_reaches_for_no_clock_no_dice_and_no_machine(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules = {(node.module or "").split(".")[0]}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_CALLS, f"{relative(path)}:{node.lineno} calls {node.func.id}"
            continue
        else:
            continue
        assert not modules & FORBIDDEN_MODULES, f"{relative(path)}:{node.lineno} imports {modules & FORBIDDEN_MODULES}"


@pytest.mark.parametrize("path", PYTHON_FILES, ids=relative)
def test_files_and_functions_stay_small_enough_to_read(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= FILE_LINES, (
        f"{relative(path)} outgrew {FILE_LINES} lines: name the missing concept"
    )
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES, f"{relative(path)}:{node.lineno} {node.name} has {lines} lines"


@pytest.mark.parametrize("path", [path for path in PYTHON_FILES if SOURCE in path.parents], ids=relative)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), f"{relative(path)} has no docstring"


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{relative(path)}:{number}"
        for path in PYTHON_FILES
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert found == []


def test_every_api_has_a_file_of_its_own_and_every_file_is_registered() -> None:
    from ottla.broker import api
    from ottla.broker.dispatch import registered_handlers

    helpers = {"__init__", "answering", "authorized_operations", "security_disabled", "transaction_errors"}
    files = {path.stem for path in (SOURCE / "broker" / "api").glob("*.py")} - helpers
    assert files == set(api.__all__)
    assert {handler.api_key.name.lower() for handler in registered_handlers().values()} == files


def test_the_documented_apis_are_the_served_ones() -> None:
    from ottla.broker import api  # noqa: F401 - registers the handlers
    from ottla.broker.dispatch import registered_handlers

    table = re.findall(
        r"^\| (\w+) \| (\d+) \| (\d+) to (\d+) \|", (ROOT / "docs" / "COMPATIBILITY.md").read_text(), re.M
    )
    documented = {(name, int(key), int(low), int(high)) for name, key, low, high in table}
    served = {
        (handler.request.__name__.removesuffix("Request"), int(key), handler.min_version, handler.max_version)
        for key, handler in registered_handlers().items()
    }
    assert documented == served


def test_no_example_of_a_property_fails_for_being_slow() -> None:
    """Beside other work any of them may be."""
    assert settings.default is not None
    assert settings.default.deadline is None
