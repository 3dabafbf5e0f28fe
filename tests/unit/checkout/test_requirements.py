"""What `make run` installs, and how far it says that is."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout.requirements import InstallFailed, PipWatch, install, requirements_of

_PROJECT = """
[project.optional-dependencies]
arrow = ["pyarrow>=18"]
events = ["h3>=4.1,<5"]
spark = ["ottla[arrow]", "pandas>=2.2,<3"]
pipelines = ["ottla[events,spark]"]
page = ["plotly>=6", "pyarrow>=18"]
"""


def test_extras_within_extras_are_found_and_nothing_is_named_twice(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(_PROJECT)
    found = requirements_of(["pipelines", "page"], project)
    assert sorted(found) == ["h3>=4.1,<5", "pandas>=2.2,<3", "plotly>=6", "pyarrow>=18"]


def test_what_is_fetched_is_told_in_megabytes_and_what_is_unpacked_too(tmp_path: Path) -> None:
    scratch, packages = tmp_path / "scratch", tmp_path / "packages"
    for folder in (scratch, packages):
        folder.mkdir()
    (packages / "of-before").write_bytes(bytes(3_000_000))
    watch = PipWatch(scratch, packages)
    assert watch.progress() == "looking for packages"
    watch.note("  Downloading pyspark-4.2.1.tar.gz (450.7 MB)\n")
    (scratch / "part").write_bytes(bytes(2_500_000))
    assert watch.progress() == "fetching pyspark, 2 of 451 MB"
    watch.note("Building wheel for pyspark (pyproject.toml): started\n")
    assert watch.progress() == "putting pyspark together"
    watch.note("Installing collected packages: pytz, pyspark\n")
    (packages / "new").write_bytes(bytes(4_000_000))
    assert watch.progress() == "unpacking, 4 MB so far"


def test_what_pip_cannot_install_is_told_by_its_reason(tmp_path: Path) -> None:
    with pytest.raises(InstallFailed, match=r"ERROR: .*nothing-there"):
        install([f"{tmp_path}/nothing-there"], lambda text: None)
