"""Standard output and error into a file for a while: Spark's JVM, its Python processes and its driver write there as
they like, and the JVM has both from the process that starts it.

What the command itself prints goes on to the standard output that it was given. What it has to say of errors comes
after, on the standard error that it was given; where it fails for something that Java has said, with that.
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TextIO

_STDOUT, _STDERR = 1, 2
_MOST_BYTES = 1_000_000
# Lines of logs begin with a date; what ends a JVM, or keeps one from starting, is said without.
_REASON = re.compile(r"^(?![\d\s]).*?\b(?:\w*Exception|\w*Error|Invalid|Unrecognized)\b", re.IGNORECASE)


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Within: what this process does not print itself goes to the end of this file. Errors of a run say where to read
    on."""
    from ottla.pipelines.frame.running import FeedFailed
    from ottla.pipelines.frame.session import SparkFailed
    from ottla.pipelines.frame.telling import PipelineFailed

    path.parent.mkdir(parents=True, exist_ok=True)
    begins_at = path.stat().st_size if path.exists() else 0
    try:
        with _redirected_to(path):
            yield
    except SparkFailed as error:
        said = _reason(path, begins_at)
        raise SparkFailed(f"{error}{f' ({said})' if said else ''}; what Java said is in {path}") from error
    except (PipelineFailed, FeedFailed) as error:
        raise type(error)(f"{error}; more is in {path}") from error


def _reason(path: Path, begins_at: int) -> str | None:
    """The first line since then that tells of an error, without the traces below it."""
    with path.open("rb") as log:
        log.seek(begins_at)
        lines = log.read(_MOST_BYTES).decode(errors="replace").splitlines()
    return next((line.strip() for line in lines if _REASON.search(line)), None)


@contextlib.contextmanager
def _redirected_to(path: Path) -> Iterator[None]:
    with path.open("ab", buffering=0) as log, _redirected(_STDERR, log), _screen_kept(), _redirected(_STDOUT, log):
        yield


@contextlib.contextmanager
def _redirected(descriptor: int, log: IO[bytes]) -> Iterator[None]:
    sys.stderr.flush()
    before = os.dup(descriptor)
    os.dup2(log.fileno(), descriptor)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, descriptor)
        os.close(before)


@contextlib.contextmanager
def _screen_kept() -> Iterator[None]:
    """Within: `sys.stdout` writes to where it does now, by another descriptor than the one that children inherit."""
    before = sys.stdout
    if not _is_standard(before):
        yield
        return
    before.flush()
    with open(os.dup(_STDOUT), "w", buffering=1, encoding=before.encoding, errors=before.errors) as screen:
        sys.stdout = screen
        try:
            yield
        finally:
            sys.stdout = before


def _is_standard(stream: TextIO) -> bool:
    """Whether it writes to the descriptor that children have as their standard output."""
    try:
        return stream.fileno() == _STDOUT
    except (OSError, ValueError):
        return False
