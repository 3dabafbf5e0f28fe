"""What a setting is made of: Kafka's name for it, its kind, which values it takes, and what it is for.

A setting is a field of a frozen dataclass, declared by `setting(...)`. Its Python name is Kafka's with underscores.
Values come as Python objects or as the texts of a `.properties` file: "10", "true", "a,b".
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from typing import Any

from ottla.client.errors import ConfigError

INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

_KEY = "setting"


class Kind(Enum):
    """The type of a setting's value, and how it is called when a value is none of it."""

    BOOLEAN = "true or false"
    INT = "a whole number of 32 bits"
    LONG = "a whole number of 64 bits"
    DOUBLE = "a number"
    STRING = "a string"
    PASSWORD = "a string (never shown)"
    LIST = "a list of strings, or one string with commas"
    ACKS = "all (also written -1), 1 or 0"
    OBJECT = "a Python object"


@dataclass(frozen=True, slots=True)
class Check:
    """Which values of the right kind are accepted, and how to say so. `choices` are found in any case of letters."""

    accepts: Callable[[Any], bool]
    allowed: str
    choices: tuple[str, ...] = ()

    def canonical(self, value: Any) -> Any:
        lowered = value.lower() if self.choices else value
        return next((choice for choice in self.choices if choice.lower() == lowered), value)


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    kind: Kind
    check: Check | None
    documentation: str
    aliases: tuple[str, ...]
    is_optional: bool

    @property
    def field_name(self) -> str:
        return self.name.replace(".", "_")

    def value_of(self, given: object) -> Any:
        """What `given` stands for, or ConfigError with what would be allowed."""
        if given is None and self.is_optional:
            return None
        try:
            value = _PARSERS[self.kind](given)
        except (TypeError, ValueError):
            raise self.refusal(given) from None
        if self.check is None:
            return value
        value = self.check.canonical(value)
        if not self.check.accepts(value):
            raise self.refusal(given)
        return value

    def refusal(self, given: object) -> ConfigError:
        shown = "this value" if self.kind is Kind.PASSWORD else repr(given)
        allowed = self.kind.value
        if self.check is not None:
            is_number = self.kind in (Kind.INT, Kind.LONG, Kind.DOUBLE)
            allowed = f"{allowed}, {self.check.allowed}" if is_number else self.check.allowed
        return ConfigError(f"{self.name} cannot be {shown}: it takes {allowed}")


def setting(
    name: str,
    kind: Kind,
    default: object,
    documentation: str,
    check: Check | None = None,
    *,
    aliases: Iterable[str] = (),
) -> Any:
    """A field of a configuration. `aliases` are further names of it, dotted; a default of None makes it optional."""
    declared = Setting(name, kind, check, documentation, tuple(aliases), default is None)
    return field(default=default, metadata={_KEY: declared}, repr=kind is not Kind.PASSWORD)


def setting_of(declared: "Field[Any]") -> Setting:
    found: Setting = declared.metadata[_KEY]
    return found


def settings_of(config: type) -> dict[str, Setting]:
    """The settings of a configuration by field name, in their order."""
    return {declared.name: setting_of(declared) for declared in fields(config) if _KEY in declared.metadata}


def at_least(low: float) -> Check:
    return Check(lambda value: bool(value >= low), f"at least {low}")


def between(low: float, high: float) -> Check:
    return Check(lambda value: bool(low <= value <= high), f"from {low} to {high}")


def one_of(*allowed: str) -> Check:
    return Check(lambda value: value in allowed, "one of " + ", ".join(choice or '""' for choice in allowed), allowed)


NOT_EMPTY = Check(lambda value: bool(value), "a text that is not empty")


def _boolean(given: object) -> bool:
    if isinstance(given, bool):
        return given
    text = given.strip().lower() if isinstance(given, str) else ""
    if text not in ("true", "false"):
        raise ValueError
    return text == "true"


def _whole(given: object, limit: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int | str | float):
        raise TypeError
    value = int(given.strip(), 10) if isinstance(given, str) else int(given)
    if not -limit - 1 <= value <= limit or (isinstance(given, float) and value != given):
        raise ValueError
    return value


def _double(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | str | float):
        raise TypeError
    value = float(given)
    if not math.isfinite(value):
        raise ValueError
    return value


def _string(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


def _stripped(given: object) -> str:
    return _string(given).strip()


def _list(given: object) -> tuple[str, ...]:
    items = given.split(",") if isinstance(given, str) else given
    if not isinstance(items, list | tuple | set | frozenset):
        raise TypeError
    ordered = sorted(items) if isinstance(items, set | frozenset) else items
    return tuple(dict.fromkeys(text for text in map(_stripped, ordered) if text))


def _acks(given: object) -> int:
    value = -1 if isinstance(given, str) and given.strip().lower() == "all" else _whole(given, INT16_MAX)
    if value not in (-1, 0, 1):
        raise ValueError
    return value


_PARSERS: dict[Kind, Callable[[object], object]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INT: lambda given: _whole(given, INT32_MAX),
    Kind.LONG: lambda given: _whole(given, INT64_MAX),
    Kind.DOUBLE: _double,
    Kind.STRING: _stripped,
    Kind.PASSWORD: _string,
    Kind.LIST: _list,
    Kind.ACKS: _acks,
    Kind.OBJECT: lambda given: given,
}
