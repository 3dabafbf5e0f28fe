"""Beside the screen of `make run`: installs what extras need, then compiles modules for the next start.

    python -m checkout.prepare pipelines

Each line that it prints says how far it is; after the line `ready` Spark can start. Before it compiles it waits for a
line on its standard input: the pipelines run then, and need less of the processor. It exits with 1, and the reason in
its last line, where something cannot be installed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from checkout.compiled import Checkout
from checkout.requirements import InstallFailed, install, requirements_of

READY = "ready"
_ROOT = Path(__file__).parents[1]


def main(extras: Sequence[str]) -> int:
    wanted = requirements_of(extras, _ROOT / "pyproject.toml")
    stamp = Path(sys.prefix) / f".installed-{'-'.join(extras)}"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != "\n".join(wanted):
        try:
            install(wanted, lambda text: _say(f"Installing Spark: {text}"))
        except InstallFailed as failure:
            _say(f"Spark could not be installed: {failure}")
            return 1
        stamp.write_text("\n".join(wanted), encoding="utf-8")
    _say(READY)
    checkout = Checkout(_ROOT)
    if not checkout.is_complete() and sys.stdin.readline():
        checkout.compile(_say)
        _say("")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
