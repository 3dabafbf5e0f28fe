"""Inputs in files: those that are kept with the tests, those that earlier runs found, and the findings.

A text file has one input in each line, as hex digits or as a Python bytes literal; `#` begins a comment. What a run
finds is kept as it is, one file for each input, named by its hash.
"""

import ast
import hashlib
from pathlib import Path

KEPT = Path(__file__).resolve().parent / "corpus"


def read_inputs(path: Path) -> list[bytes]:
    inputs: list[bytes] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("b"):
            literal = ast.literal_eval(text) if text[1:2] in ("'", '"') else bytes.fromhex(text)
            assert isinstance(literal, bytes), f"{path}: a bytes literal expected, {text} came"
            inputs.append(literal)
        elif text and not text.startswith("#"):
            inputs.append(bytes.fromhex(text))
    return inputs


def kept_inputs(target: str) -> list[bytes]:
    """What is kept with the tests: inputs that once broke something, and such that reach far."""
    path = KEPT / f"{target}.hex"
    return read_inputs(path) if path.exists() else []


class FoundInputs:
    """The inputs of one target that runs on this machine have found."""

    def __init__(self, directory: Path, target: str) -> None:
        self._directory = directory / target
        self._known: set[str] = set()

    def add(self, data: bytes) -> None:
        name = hashlib.sha256(data).hexdigest()[:24]
        if name not in self._known:
            self._known.add(name)
            self._directory.mkdir(parents=True, exist_ok=True)
            # Readers may be looking: they see a whole file or none.
            partial = self._directory / f".{name}"
            partial.write_bytes(data)
            partial.rename(self._directory / name)

    def news(self) -> list[bytes]:
        """Those that were not there when this was last asked, in an order that does not depend on the machine."""
        if not self._directory.exists():
            return []
        names = sorted(path.name for path in self._directory.iterdir() if not path.name.startswith("."))
        fresh = [name for name in names if name not in self._known]
        self._known.update(fresh)
        return [(self._directory / name).read_bytes() for name in fresh]
