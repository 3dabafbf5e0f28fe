"""Numbers and times that a user hands in with a record, the same for the native code and for its pure twin."""

import operator
from datetime import datetime
from typing import Any

from ottla.client.producer import faults
from ottla.client.times import milliseconds_of


def number(value: Any, what: str) -> int:
    """A whole number of 64 bits. What is no int but means one, as NumPy's integers do, is taken."""
    try:
        found = operator.index(value)
    except TypeError:
        raise faults.not_a_number(what, value) from None
    if not -(2**63) <= found < 2**63:
        raise faults.not_a_number(what, value)
    return found


def stamp(value: Any) -> int:
    """A record's timestamp: milliseconds since 1970, or a datetime."""
    if isinstance(value, datetime):
        try:
            return milliseconds_of(value)
        except (TypeError, ValueError, OverflowError):
            raise faults.not_a_time(value) from None
    if not hasattr(value, "__index__"):
        raise faults.not_a_time(value)
    return number(value, "timestamp")
