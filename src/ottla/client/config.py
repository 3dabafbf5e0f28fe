"""The settings of the clients: Kafka's names, Kafka's defaults, Kafka's rules about which go together.

    resolve(ProducerConfig, "localhost:9092", {"linger.ms": "10"}, {"acks": "all"})

A setting is given by its dotted name in `config`, or as a keyword with underscores, which wins. A name that does not
exist is refused with the nearest one that does; a value that is not allowed with what is.

| module            | holds                                                             |
|-------------------|-------------------------------------------------------------------|
| `config`          | `resolve`: from names and values to one of the following          |
| `config_client`   | what all clients have; the admin client                           |
| `config_producer`, `config_consumer` | what they have beside that                     |
| `config_security` | TLS and SASL, which all clients have                              |
| `config_settings` | what a setting is made of                                         |
| `config_ignored`  | Kafka's settings that mean nothing here                           |

Two defaults differ from Java's: `send.buffer.bytes` and `receive.buffer.bytes` are left to the operating system, which
sizes them by what the connection can carry.
"""

import logging
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from typing import Any, TypeVar

from ottla.client.config_client import AdminConfig, ClientConfig
from ottla.client.config_consumer import ConsumerConfig
from ottla.client.config_ignored import HARMLESS, REFUSED
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
        servers = bootstrap_servers if isinstance(bootstrap_servers, str) else tuple(bootstrap_servers)
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


def _pass_over(kind: type[ClientConfig], name: str, known: Mapping[str, Setting]) -> None:
    """Say in the log why a setting is not used, or refuse it."""
    dotted = _dotted(name)
    if dotted in REFUSED:
        raise ConfigError(f"{dotted} cannot be used: {REFUSED[dotted]}")
    if dotted in HARMLESS:
        logger.warning("%s has no effect in this client", dotted)
        return
    owners = [other for other in _KINDS if dotted in _names_of(other)]
    if owners:
        owner = owners[0].__name__.removesuffix("Config").lower()
        logger.warning("%s has no effect here: it is a setting of the %s", dotted, owner)
        return
    near = _nearest(dotted, known)
    looks_like_keyword = "." not in name
    if near is not None:
        meant = near.replace(".", "_") if looks_like_keyword else near
        raise ConfigError(f"there is no setting {name!r}: did you mean {meant!r}?")
    raise ConfigError(f"there is no setting {name!r}: see the fields of {kind.__name__} for those that there are")


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
