"""The short way into `ottla broker`.

The command line library takes a third of the time until a broker is ready, so the usual ways to call `ottla broker` are
read here. Whatever is not plainly right (`--help`, an unknown option, a missing value) goes the long way, which has
the words for it; so do errors, which are told in colour.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.cli.serve import BrokerOptions

COMMAND = "broker"
OPTIONS = {
    "--config": "config",
    "-c": "config",
    "--set": "settings",
    "-s": "settings",
    "--data": "data",
    "-d": "data",
    "--port": "port",
    "-p": "port",
    "--log-level": "log_level",
    "--log-format": "log_format",
}
_LARGEST_PORT = 65535


def read_options(arguments: Sequence[str]) -> "BrokerOptions | None":
    """The options of `ottla broker`, or None when somebody else has to look at the arguments."""
    if not arguments or arguments[0] != COMMAND:
        return None
    from ottla.cli.serve import BrokerOptions

    options = BrokerOptions()
    rest = list(arguments[:0:-1])
    while rest:
        name, has_value, value = rest.pop().partition("=")
        field = OPTIONS.get(name)
        if field is None or (has_value and not name.startswith("--")):
            return None
        if not has_value:
            if not rest or rest[-1].startswith("-"):
                return None
            value = rest.pop()
        if not _take(options, field, value):
            return None
    return options


def _take(options: "BrokerOptions", field: str, value: str) -> bool:
    if field == "settings":
        options.settings = [*(options.settings or []), value]
    elif field == "port":
        if not (value.isascii() and value.isdecimal()) or int(value) > _LARGEST_PORT:
            return False
        options.port = int(value)
    elif field == "log_level":
        options.log_level = value
    elif field == "log_format":
        options.log_format = value
    elif field == "config":
        options.config = Path(value)
    else:
        options.data = Path(value)
    return True
