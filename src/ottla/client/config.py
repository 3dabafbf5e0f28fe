"""The settings of the clients: Kafka's names, Kafka's defaults, Kafka's rules about which go together.

    resolve(ProducerConfig, "localhost:9092", {"linger.ms": "10"}, {"acks": "all"})

A setting is given by its dotted name in `config`, or as a keyword with underscores, which wins. A name that does not
exist is refused with the nearest one that does, a name of another Python client with what to write instead, and a value
that is not allowed with what is.

| module            | holds                                                             |
|-------------------|-------------------------------------------------------------------|
| `config`          | `resolve`: from names and values to one of the following          |
| `config_client`   | what all clients have; the admin client                           |
| `config_producer`, `config_consumer` | what they have beside that                     |
| `config_security` | TLS and SASL, which all clients have                              |
| `config_settings` | what a setting is made of                                         |
| `config_ignored`  | Kafka's settings that mean nothing here                           |
| `config_others`   | settings of other Python clients, and what to write instead       |

Two defaults differ from Java's: `send.buffer.bytes` and `receive.buffer.bytes` are left to the operating system, which
sizes them by what the connection can carry.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import Any, TypeVar

from ottla.client.config_client import AdminConfig, ClientConfig
from ottla.client.config_consumer import ConsumerConfig
from ottla.client.config_ignored import HARMLESS, REFUSED, REFUSED_BY_CONSUMERS
from ottla.client.config_others import instead_of, is_harmless
from ottla.client.config_producer import ProducerConfig
from ottla.client.config_settings import Setting, settings_of
from ottla.client.errors import ConfigError

__all__ = ["AdminConfig", "ClientConfig", "ConsumerConfig", "ProducerConfig", "kafka_name", "parse_address", "resolve"]

logger = logging.getLogger(__name__)

_PORT_MAX = 65535

_KINDS: tuple[type[ClientConfig], ...] = (ProducerConfig, ConsumerConfig, AdminConfig)

Config = TypeVar("Config", bound=ClientConfig)


def resolve(
    kind: type[Config],
    bootstrap_servers: str | Iterable[str] | None = None,
    config: Mapping[str, object] | None = None,
    keywords: Mapping[str, object] | None = None,
) -> Config:
    """The configuration of a client, or ConfigError. Later sources win: `config`, `keywords`, `bootstrap_servers`."""
    _refuse_wrong_places(kind, bootstrap_servers, config)
    known = _names_of(kind)
    values: dict[str, Any] = {}
    for source in (config or {}, keywords or {}):
        for name, given in source.items():
            found = known.get(_dotted(name))
            if found is not None:
                values[found.field_name] = found.value_of(given)
            else:
                _pass_over(kind, name, known)
    if bootstrap_servers is not None:
        is_several = isinstance(bootstrap_servers, Iterable) and not isinstance(bootstrap_servers, str | bytes)
        servers = tuple(bootstrap_servers) if is_several else bootstrap_servers
        values["bootstrap_servers"] = known["bootstrap.servers"].value_of(servers)
    resolved = kind(**values).settled(frozenset(values))
    if not resolved.bootstrap_servers:
        raise ConfigError("bootstrap.servers is missing: name at least one broker, such as localhost:9092")
    for server in resolved.bootstrap_servers:
        parse_address(server)
    return resolved


def parse_address(server: str) -> tuple[str, int]:
    """Host and port of `host:port`, `[address]:port` or `protocol://host:port`, or ConfigError."""
    host, colon, port = server.rpartition("://")[2].rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_bracketed else host
    if not colon or not host or not port.isdecimal() or not 0 < int(port) <= _PORT_MAX or (":" in host) != is_bracketed:
        raise ConfigError(
            f"bootstrap.servers has {server!r}: it takes host:port, such as localhost:9092 or [::1]:9092, separated by "
            "commas"
        )
    return host, int(port)


def kafka_name(name: str) -> str:
    """Kafka's name of a setting that is written in any way that `resolve` takes (with underscores, as an alias); a name
    that no client has stays as it is, so that a refusal tells what was written."""
    for kind in _KINDS:
        found = _names_of(kind).get(_dotted(name))
        if found is not None:
            return found.name
    return name


def _dotted(name: object) -> str:
    if not isinstance(name, str):
        raise ConfigError(f"the name of a setting is a string, not {name!r}")
    return name.strip().replace("_", ".")


def _names_of(kind: type[ClientConfig]) -> dict[str, Setting]:
    names: dict[str, Setting] = {}
    for found in settings_of(kind).values():
        for name in (found.name, *found.aliases):
            names[name] = found
    return names


def _refuse_wrong_places(kind: type[ClientConfig], bootstrap_servers: object, config: object) -> None:
    """ConfigError where settings came in the place of addresses, or something else in the place of settings."""
    if isinstance(bootstrap_servers, Mapping):
        client = _role(kind).capitalize()
        raise ConfigError(
            f"a dictionary of settings is given as config: write {client}(config={{...}}) or "
            f"Async{client}(config={{...}})"
        )
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(
            f'config takes a dictionary of settings, such as {{"client.id": "me"}}, not {type(config).__name__}'
        )


def _pass_over(kind: type[ClientConfig], name: str, known: Mapping[str, Setting]) -> None:
    """Say in the log why a setting is not used, or refuse it."""
    dotted = _dotted(name)
    refused = REFUSED | REFUSED_BY_CONSUMERS if issubclass(kind, ConsumerConfig) else REFUSED
    if dotted in refused:
        raise ConfigError(f"{name} cannot be used: {refused[dotted]}")
    if dotted in HARMLESS or is_harmless(dotted):
        logger.warning("%s has no effect in this client", name)
        return
    owners = [other for other in _KINDS if dotted in _names_of(other)]
    if owners:
        logger.warning("%s has no effect here: it is a setting of the %s", name, _role(owners[0]))
        return
    looks_like_keyword = "." not in name
    advice = instead_of(dotted, _role(kind))
    if advice is not None:
        raise ConfigError(f"there is no setting {name!r}: {_spelt(advice, as_keywords=looks_like_keyword)}")
    near = _nearest(dotted, known)
    if near is not None:
        meant = near.replace(".", "_") if looks_like_keyword else near
        raise ConfigError(f"there is no setting {name!r}: did you mean {meant!r}?")
    raise ConfigError(f"there is no setting {name!r}: see the fields of {kind.__module__}.{kind.__name__}")


def _role(kind: type[ClientConfig]) -> str:
    return kind.__name__.removesuffix("Config").lower()


def _spelt(advice: str, *, as_keywords: bool) -> str:
    """An advice with its settings, which stand in backticks as calls do, spelt as the user spells them."""

    def spell(marked: re.Match[str]) -> str:
        is_setting = as_keywords and any(marked[1] in _names_of(kind) for kind in _KINDS)
        return marked[1].replace(".", "_") if is_setting else marked[1]

    return re.sub("`([^`]+)`", spell, advice)


def _nearest(dotted: str, known: Iterable[str]) -> str | None:
    """The name that was most likely meant. Where no name of this client is as near, it is one of another client: the
    same settings are often given to several."""
    everywhere = sorted({name for kind in _KINDS for name in _names_of(kind)})
    nearest = get_close_matches(dotted, everywhere, n=1, cutoff=0.6)
    own = get_close_matches(dotted, known, n=1, cutoff=0.6)
    if own and _likeness(dotted, own[0]) >= _likeness(dotted, nearest[0]):
        return own[0]
    return nearest[0] if nearest else None


def _likeness(written: str, name: str) -> float:
    return SequenceMatcher(None, name, written).ratio()
