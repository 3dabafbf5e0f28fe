"""How an error reaches the user as one sentence.

Spark puts an exception of its Python processes into the driver's exception, together with its traceback, which is of
no use to whoever misspelt an option. A process that raises one of the errors of this package ends right after it, so
it may tell Spark to leave the traceback out (`told_plainly`).
"""

import functools
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from ottla.client.errors import OttlaError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Spark's workers have it, and ask `HIDE` just before they report an exception.
_IN_WORKER = "SPARK_PYTHON_RUNTIME"
_WORKER_PORT = "PYTHON_WORKER_FACTORY_PORT"
_HIDE = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plainly() -> Generator[None, None, None]:
    """Within: an error of this package is reported by its text alone, where this is a process of Spark's."""
    try:
        yield
    except OttlaError as error:
        if _IN_WORKER in os.environ or _WORKER_PORT in os.environ:
            os.environ[_HIDE] = "1"
        raise error from None


def told_plainly(call: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """`plainly` as a decorator."""

    @functools.wraps(call)
    def wrapped(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        with plainly():
            return call(*args, **options)

    return wrapped
