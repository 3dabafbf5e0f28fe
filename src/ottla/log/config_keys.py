"""What a topic can be told: every key with its type, default, allowed values and meaning.

The names, types, defaults and limits are Kafka's, so that its tools and clients can set and describe them; a test
compares the table with Kafka's own. Keys that begin with `ottla.` are this project's additions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
HOUR_MS = 3_600_000
MINUTE_MS = 60_000

ConfigValue = bool | int | float | str | tuple[str, ...] | None


class ConfigType(Enum):
    """The type names that DescribeConfigs reports."""

    BOOLEAN = "BOOLEAN"
    SHORT = "SHORT"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    LIST = "LIST"


class BadConfigValue(ValueError):
    """A text that is not a value of its key: says what would have been one."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which values of the right type are accepted, and how to say so."""

    accepts: Callable[[ConfigValue], bool]
    description: str


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker-wide setting that gives a topic key its default, in a unit of its own."""

    name: str
    multiplier: int = 1


@dataclass(frozen=True, slots=True)
class ConfigKey:
    name: str
    type: ConfigType
    default: ConfigValue
    allowed: Allowed | None
    documentation: str
    synonyms: tuple[Synonym, ...] = ()
    internal: bool = False

    @property
    def field_name(self) -> str:
        return self.name.replace(".", "_")

    def parse(self, text: str) -> ConfigValue:
        """The value in `text`, or `BadConfigValue`."""
        value = _PARSERS[self.type](text.strip())
        if self.allowed is not None and not self.allowed.accepts(value):
            raise BadConfigValue(self.allowed.description)
        return value

    def format(self, value: ConfigValue) -> str:
        """The text of a value, as tools show it."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise BadConfigValue("true or false")
    return lowered == "true"


def _parse_integer(text: str, limit: int, kind: str) -> int:
    try:
        value = int(text, 10)
    except ValueError:
        raise BadConfigValue(f"a whole number ({kind})") from None
    if not -limit - 1 <= value <= limit:
        raise BadConfigValue(f"a whole number that fits in {kind}")
    return value


def _parse_double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadConfigValue("a number") from None


def _parse_list(text: str) -> tuple[str, ...]:
    """Repeated items count once."""
    return tuple(dict.fromkeys(item.strip() for item in text.split(","))) if text else ()


_PARSERS: dict[ConfigType, Callable[[str], ConfigValue]] = {
    ConfigType.BOOLEAN: _parse_boolean,
    ConfigType.SHORT: lambda text: _parse_integer(text, INT16_MAX, "16 bits"),
    ConfigType.INT: lambda text: _parse_integer(text, INT32_MAX, "32 bits"),
    ConfigType.LONG: lambda text: _parse_integer(text, INT64_MAX, "64 bits"),
    ConfigType.DOUBLE: _parse_double,
    ConfigType.STRING: lambda text: text,
    ConfigType.LIST: _parse_list,
}


def at_least(minimum: int) -> Allowed:
    return Allowed(lambda value: isinstance(value, int) and value >= minimum, f"at least {minimum}")


def between(minimum: float, maximum: float) -> Allowed:
    return Allowed(
        lambda value: isinstance(value, int | float) and minimum <= value <= maximum,
        f"between {minimum} and {maximum}",
    )


def one_of(*choices: str) -> Allowed:
    return Allowed(lambda value: value in choices, f"one of {', '.join(choices)}")


def any_of(*choices: str) -> Allowed:
    return Allowed(
        lambda value: isinstance(value, tuple) and all(item in choices for item in value),
        f"a list of {', '.join(choices)}",
    )


def _is_replica_list(value: ConfigValue) -> bool:
    if not isinstance(value, tuple):
        return False
    pairs = [item.split(":") for item in value]
    return value == ("*",) or all(len(pair) == 2 and all(part.isdecimal() for part in pair) for pair in pairs)


REPLICA_LIST = Allowed(_is_replica_list, "* or a list of partition:broker pairs")
GZIP_LEVEL = Allowed(lambda value: value == -1 or (isinstance(value, int) and 1 <= value <= 9), "1 to 9, or -1")
