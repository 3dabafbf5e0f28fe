"""The names of the package: each is loaded with its theme when it is asked for."""

import subprocess
import sys

import pytest

import ottla.client.admin as package


@pytest.mark.parametrize("name", package.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(package, name) is not None
    assert name in dir(package)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'NewQueue'"):
        _ = package.NewQueue


def test_a_theme_is_loaded_without_the_others() -> None:
    code = "import sys; from ottla.client.admin import OffsetSpec; print('ottla.client.admin.admin' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"
