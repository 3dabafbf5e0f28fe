"""Homes of links: which PySpark they lead to, and that two environments do not share one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from ottla.spark.home import quick_spark_home, shared_spark_home


def _installed(monkeypatch: pytest.MonkeyPatch, directory: Path, version: str) -> Path:
    """A PySpark of this version in an environment of its own, which is the one that is imported."""
    package = directory / "pyspark"
    for folder in ("bin", "jars", "python"):
        (package / folder).mkdir(parents=True)
    module = ModuleType("pyspark")
    module.__file__ = str(package / "__init__.py")
    module.__dict__["__version__"] = version
    monkeypatch.setitem(sys.modules, "pyspark", module)
    return package


def test_a_home_leads_to_the_installed_pyspark_without_its_archive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = _installed(monkeypatch, tmp_path / "a", "4.2.0")
    home = quick_spark_home(tmp_path / "home")
    assert (home / "jars").resolve() == package / "jars"
    assert not (home / "python").exists()
    assert quick_spark_home(home) == home


def test_environments_have_homes_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = _installed(monkeypatch, tmp_path / "a", "4.2.0")
    home = shared_spark_home(tmp_path / "homes")
    same_version = _installed(monkeypatch, tmp_path / "b", "4.2.0")
    other = shared_spark_home(tmp_path / "homes")
    newer = _installed(monkeypatch, tmp_path / "c", "4.3.0")
    newest = shared_spark_home(tmp_path / "homes")
    assert len({home, other, newest}) == 3
    assert newest.name.startswith("4.3.0-")
    assert [(one / "jars").resolve().parent for one in (home, other, newest)] == [first, same_version, newer]
