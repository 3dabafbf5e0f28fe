"""The pytest plugin, in runs of pytest of its own."""

import subprocess
import sys
import tomllib

import pytest
from tests.peers.paths import REPOSITORY
from tests.unit.testing.guide import OTHER_PLUGINS_OFF

import ottla.testing

PLUGIN = "ottla.testing.plugin"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "src"))
    monkeypatch.setenv("PYTEST_ADDOPTS", OTHER_PLUGINS_OFF)
    return pytester


def test_each_test_has_an_empty_broker_and_the_run_has_one_to_share(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        import pytest

        ports = []

        @pytest.mark.parametrize("number", range(3))
        def test_fresh(ottla_broker, number):
            assert ottla_broker.topics() == {}
            ottla_broker.produce("topic", str(number))
            assert [record.value for record in ottla_broker.records("topic")] == [str(number).encode()]

        @pytest.mark.parametrize("number", range(3))
        def test_shared(ottla_session_broker, number):
            ottla_session_broker.produce("topic", str(number))
            ports.append(ottla_session_broker.port)
            assert len(ottla_session_broker.records("topic")) == len(ports)
            assert len(set(ports)) == 1
        """
    )
    run.runpytest_subprocess("-p", PLUGIN, "--strict-markers", "-W", "error").assert_outcomes(passed=6)


def test_properties_come_from_the_ini_file_and_from_markers(run: pytest.Pytester) -> None:
    run.makeini("[pytest]\nottla_properties =\n    num.partitions = 3\n    auto.create.topics.enable=true\n")
    run.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.ottla(properties={"num.partitions": "4", "broker.rack": "r1"})

        def test_of_the_module(ottla_broker):
            ottla_broker.produce("topic", "value")
            assert ottla_broker.topics() == {"topic": 4}

        @pytest.mark.ottla(properties={"num.partitions": 5})
        def test_of_the_test(ottla_broker):
            ottla_broker.produce("topic", "value")
            assert ottla_broker.topics() == {"topic": 5}
            assert ottla_broker.broker.config.rack == "r1"

        def test_of_the_session(ottla_session_broker):
            ottla_session_broker.produce("topic", "value")
            assert ottla_session_broker.topics() == {"topic": 3}
        """
    )
    run.runpytest_subprocess("-p", PLUGIN, "--strict-markers", "-W", "error").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("ini", "marker", "expected"),
    [
        ("num.partitions", "properties={}", "it must look like key=value"),
        ("", "'num.partitions'", "@pytest.mark.ottla(properties="),
        ("", "propertys={}", "@pytest.mark.ottla(properties="),
        ("", "properties={'num.partitions': 'few'}", "num.partitions is 'few'"),
    ],
)
def test_wrong_settings_are_said(run: pytest.Pytester, ini: str, marker: str, expected: str) -> None:
    run.makeini(f"[pytest]\nottla_properties =\n    {ini}\n")
    run.makepyfile(f"import pytest\n@pytest.mark.ottla({marker})\ndef test_it(ottla_broker): pass\n")
    result = run.runpytest_subprocess("-p", PLUGIN)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{expected.replace('[', '[[]')}*"])


def test_the_markers_and_fixtures_are_listed(run: pytest.Pytester) -> None:
    run.runpytest_subprocess("-p", PLUGIN, "--markers").stdout.fnmatch_lines(["@pytest.mark.ottla(properties): *"])
    run.runpytest_subprocess("-p", PLUGIN, "--fixtures").stdout.fnmatch_lines(
        ["ottla_broker*", "ottla_session_broker*"]
    )


def test_nothing_is_loaded_before_a_test_asks_for_a_broker() -> None:
    program = (
        "import pytest, sys; before = set(sys.modules); import ottla.testing.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["ottla", "ottla.testing", "ottla.testing.plugin", "ottla.version"]


def test_what_the_package_offers_is_there() -> None:
    for name in ottla.testing.__all__:
        assert getattr(ottla.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Broker'"):
        ottla.testing.Broker  # noqa: B018


def test_it_is_registered_under_the_name_of_its_module() -> None:
    """Under another name, `-p ottla.testing.plugin` would register it twice, which pytest refuses."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}
