"""Standard error into a file for a while: Spark's JVM, its Python processes and its driver write there as they like.

What the command itself has to say comes after, on the standard error that it was given.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_STDERR = 2


@contextlib.contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    before = os.dup(_STDERR)
    with path.open("ab", buffering=0) as log:
        os.dup2(log.fileno(), _STDERR)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, _STDERR)
        os.close(before)
