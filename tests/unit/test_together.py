"""How all tests are shared out among processes, and what is said of them at the end."""

from collections import Counter
from pathlib import Path

import pytest
from tests.peers.paths import REPOSITORY
from tests.together import CHECKS, JOBS, Job, command, slowest

ONCE = [job for job in JOBS if not job.has_newer_pyspark]


def files_of(job: Job) -> list[str]:
    """What pytest collects for a job."""
    ignored = {argument.removeprefix("--ignore=") for argument in job.arguments(JOBS) if argument.startswith("--")}
    found = []
    for path in job.paths:
        place = REPOSITORY / path
        assert place.exists(), f"the job {job.name} names {path}, which is not there"
        for file in [place] if place.is_file() else place.rglob("test_*.py"):
            name = str(file.relative_to(REPOSITORY))
            if not any(name == other or name.startswith(f"{other}/") for other in ignored):
                found.append(name)
    return found


def test_every_file_of_tests_is_in_one_job() -> None:
    found = Counter(file for job in ONCE for file in files_of(job))
    assert {file: count for file, count in found.items() if count != 1} == {}
    assert set(found) == {str(file.relative_to(REPOSITORY)) for file in (REPOSITORY / "tests").rglob("test_*.py")}


def test_no_job_is_empty() -> None:
    assert [job.name for job in JOBS if not files_of(job)] == []


def test_the_checks_have_the_tests_of_their_job(tmp_path: Path) -> None:
    assert command(CHECKS, tmp_path, "7")[-1] == "check"
    makefile = (REPOSITORY / "Makefile").read_text()
    check = makefile[makefile.index("\ncheck:") :].split("\n\n")[0]
    assert all(path in check for path in CHECKS.paths)


def test_a_seed_repeats_the_order_of_each_job(tmp_path: Path) -> None:
    assert all("--randomly-seed=7" in command(job, tmp_path, "7") for job in JOBS if job is not CHECKS)


def test_the_slowest_tests_of_all_reports_come_first(pytester: pytest.Pytester) -> None:
    for number, name in enumerate(("first", "second")):
        pytester.makepyfile(**{f"test_{number}": f"def test_{name}(): pass"})
        pytester.inline_run(f"test_{number}.py", f"--junitxml={number}.xml").assertoutcome(passed=1)
    third = '<testcase classname="tests.unit" name="test_third" time="3600"/>'
    (pytester.path / "2.xml").write_text(f"<testsuites><testsuite>{third}</testsuite></testsuites>")
    (seconds, name), *others = slowest(pytester.path, 20)
    assert (seconds, name) == (3600.0, "tests.unit::test_third")
    assert {name for _, name in others} == {"test_0::test_first", "test_1::test_second"}
    assert slowest(pytester.path, 1) == [(3600.0, "tests.unit::test_third")]
