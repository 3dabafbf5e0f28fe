"""Errors of a run as people want to read them: one sentence, and what to do next."""

import contextlib
import errno
import re
from collections.abc import Iterator

_QUERY_IDS = re.compile(r"^\[STREAM_FAILED\] Query \[id = \S+, runId = \S+\] terminated with exception: ")
_TRACEBACK = "Traceback (most recent call last):"


class PipelineError(RuntimeError):
    """A run cannot begin, or cannot go on; the text is for whoever has started it."""


class PipelineFailed(PipelineError):
    """A query ended by an error, or could not be started; the text is what Spark said of it first."""


def first_line(text: str) -> str:
    """The line that says what went wrong, without the traces of a JVM below it. Where it is followed by a trace of
    Python's, that is the line below the trace."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "no reason was given"
    first = lines[0].strip()
    if first.endswith(_TRACEBACK):
        first = next((line for line in lines[1:] if not line[0].isspace()), first)
    return _QUERY_IDS.sub("", first)


def reason(error: BaseException) -> str:
    """The same of an error; of one of Java's, what Java says."""
    return first_line(str(getattr(error, "java_exception", error)))


def system_failure(error: OSError) -> str:
    """One of the machine's, such as a full disk: what failed, where, and what to do next."""
    where = "" if error.filename is None else f"{error.filename}: "
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "free some space, or choose another place with --data, and start it again: it goes on where it was"
    else:
        advice = "see that the place of --data can be written to, or choose another, and start it again"
    return f"reading or writing failed: {where}{error.strerror or error}; {advice}"


@contextlib.contextmanager
def told_as(kind: type[PipelineError], what: str) -> Iterator[None]:
    """Within: errors of Spark's, whose texts are traces of a JVM, become one sentence that begins with `what`."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise kind(f"{what}: {reason(error)}") from error
