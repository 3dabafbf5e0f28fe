"""The choice between the compiled twin and the pure one, made once, here.

`OTTLA_PURE=1` asks for the pure twin and gets it silently. Where the extension is missing it is taken as well, and
the first use says so: it works, but a hundred times slower.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ottla.records.errors import PureFallbackWarning
from ottla.twins import is_plain_wanted, native_of

__all__ = ["IS_NATIVE", "announced", "twin", "warn_if_fallback"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_warning_is_due = False


def warn_if_fallback() -> None:
    """Say once that records are slow here; free when they are not."""
    global _warning_is_due
    if _warning_is_due:
        _warning_is_due = False
        warnings.warn(
            "the compiled extension ottla.records._native is missing, so records are handled in pure Python, which is "
            "far slower; install a C compiler and reinstall ottla, or set OTTLA_PURE=1 if this is intended",
            PureFallbackWarning,
            stacklevel=3,
        )


def announced(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function itself, or where the pure twin was not asked for, one that warns when it is first called."""
    if not _warning_is_due:
        return function

    @wraps(function)
    def warning(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        warn_if_fallback()
        return function(*args, **kwargs)

    return warning


if TYPE_CHECKING:
    from ottla.records import _native as twin

    IS_NATIVE = True
else:
    twin = native_of("ottla.records")
    IS_NATIVE = twin is not None
    if not IS_NATIVE:
        from ottla.records import _pure as twin

        _warning_is_due = not is_plain_wanted()
