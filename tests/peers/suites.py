"""Test suites of client libraries: taken from the package registry as they were published, never kept here.

A source distribution is named by version and by checksum, so what runs today is what ran when its list of tests was
written. It is unpacked whole: a suite runs with the very library it was published with.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.peers.paths import KAFKA_PYTHON_SUITE, KAFKA_PYTHON_VERSION, PeerMissing

_KAFKA_PYTHON_SHA256 = "4ccda3616b9aa5c353d74a97f2770d6cd1b950890d77ab0e8890e09a48eeed65"

# Two files that the suite imports and its distribution leaves out. The service stands for a broker that runs already.
_KAFKA_PYTHON_ADDITIONS = {
    "test/__init__.py": "",
    "test/service.py": '''\
"""A broker that somebody else started and will end."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port


class SpawnedService:
    def __init__(self, *_):
        raise RuntimeError("the broker is started by Ottla's runner, never by a test")
''',
}


def _download(requirement: str, sha256: str, directory: Path) -> Path:
    """The source distribution, checked by pip; where it came from is pip's configuration and is not told."""
    name = requirement.partition("==")[0]
    wanted = directory / "requirements.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{sha256}\n")
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    source = ["--no-deps", "--no-binary", name, "--require-hashes", "--requirement", str(wanted)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *quiet, *source, "--dest", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = sorted(directory.glob("*.tar.gz"))
    if done.returncode != 0 or len(found) != 1:
        reason = "its checksum is not the pinned one" if "DO NOT MATCH" in done.stderr else "`pip download` failed"
        raise PeerMissing(f"no source distribution of {requirement}: {reason}")
    return found[0]


def _unpack(archive: Path, place: Path, additions: dict[str, str]) -> None:
    """The content of the one folder in the archive, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        with tarfile.open(archive) as packed:
            packed.extractall(temporary, filter="data")
        (folder,) = Path(temporary).iterdir()
        for name, content in additions.items():
            (folder / name).write_text(content)
        shutil.rmtree(place, ignore_errors=True)
        folder.rename(place)


def install_kafka_python_suite() -> bool:
    """Bring the suite unless it is there; answers whether there was something to do."""
    place, stamp = KAFKA_PYTHON_SUITE, KAFKA_PYTHON_SUITE.parent / "installed"
    wanted = f"{KAFKA_PYTHON_VERSION} {_KAFKA_PYTHON_SHA256}\n{''.join(_KAFKA_PYTHON_ADDITIONS.values())}"
    if stamp.exists() and stamp.read_text() == wanted and place.exists():
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        requirement = f"kafka-python=={KAFKA_PYTHON_VERSION}"
        _unpack(_download(requirement, _KAFKA_PYTHON_SHA256, Path(temporary)), place, _KAFKA_PYTHON_ADDITIONS)
    stamp.write_text(wanted)
    return True
