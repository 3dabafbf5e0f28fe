"""`docs/CLIENT_SETTINGS.md`, written from the declarations of the settings.

python -m tests.unit.client.settings_page
"""

from collections.abc import Iterable, Mapping

from tests.peers.paths import REPOSITORY

from ottla.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from ottla.client.config_ignored import HARMLESS, REFUSED, REFUSED_BY_CONSUMERS
from ottla.client.config_others import FOR_ALL, FOR_CONSUMERS, FOR_PRODUCERS, HARMLESS_OF_OTHERS
from ottla.client.config_security import SecurityConfig
from ottla.client.config_settings import Kind, Setting, settings_of

PAGE = REPOSITORY / "docs" / "CLIENT_SETTINGS.md"

_HEAD = """\
# Settings of the clients

The names, meanings and defaults are those of Apache Kafka's own clients, so what you know of them holds here. A setting
is given as a keyword, with underscores, or by its dotted name in a dictionary; the values may be texts, as in a
`.properties` file. A keyword wins over the dictionary.

    Producer("localhost:9092", linger_ms=10)
    Producer("localhost:9092", config={"linger.ms": "10"})

A name that does not exist is refused with the nearest one that does, a value that is not allowed with what is. The
settings of other clients that are refused, and what to use instead, are [at the end](#refused). How to use the settings
of TLS and SASL is in [CONNECTING.md](CONNECTING.md). This page is written from the code by
`python -m tests.unit.client.settings_page`.
"""


def page() -> str:
    parts = [_HEAD]
    for title, kind in (
        ("All clients", ClientConfig),
        ("Producer", ProducerConfig),
        ("Consumer", ConsumerConfig),
        ("Admin", AdminConfig),
    ):
        security = settings_of(SecurityConfig)
        shared = settings_of(ClientConfig)
        own = {
            name: found
            for name, found in settings_of(kind).items()
            if name not in security and (kind is ClientConfig or _is_own(kind, name, shared))
        }
        parts.append(_table(title, kind, own))
        if kind is ClientConfig:
            parts.append(_table("TLS and SASL, in all clients", kind, security))
    parts.append(_left_out())
    return "\n".join(parts)


def _is_own(kind: type[ClientConfig], name: str, shared: dict[str, Setting]) -> bool:
    return name not in shared or getattr(kind(), name) != getattr(ClientConfig(), name)


def _table(title: str, kind: type[ClientConfig], settings: dict[str, Setting]) -> str:
    lines = [f"## {title}", "", "| setting | default | meaning |", "|---|---|---|"]
    for name, found in settings.items():
        allowed = f" Takes {found.check.allowed}." if found.check is not None and found.check.choices else ""
        aliases = "".join(f" Also `{alias}`." for alias in found.aliases)
        lines.append(f"| `{found.name}` | {_default(kind, name, found)} | {found.documentation}{allowed}{aliases} |")
    return "\n".join([*lines, ""])


def _default(kind: type[ClientConfig], name: str, found: Setting) -> str:
    default = getattr(kind(), name)
    if found.kind is Kind.ACKS:
        return "`all`"
    if default is None or default in ("", ()):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{','.join(default) if isinstance(default, tuple) else default}`"


def _left_out() -> str:
    return "\n".join(
        [
            "## Without effect",
            "",
            "A client does the same without these. They are accepted, with a warning in the log.",
            "",
            f"Of Kafka's Java clients: {_names(HARMLESS)}.",
            "",
            f"Of confluent-kafka, kafka-python and aiokafka: {_names(HARMLESS_OF_OTHERS)}.",
            "",
            "## Refused",
            "",
            "These raise `ConfigError`, whatever their value is, and the error says what to use instead.",
            "",
            "### Settings of Kafka's Java clients",
            "",
            *_refused({"all": REFUSED, "consumer": REFUSED_BY_CONSUMERS}),
            "",
            "### Settings of confluent-kafka, kafka-python and aiokafka",
            "",
            *_refused({"all": FOR_ALL, "producer": FOR_PRODUCERS, "consumer": FOR_CONSUMERS}),
            "",
        ]
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _refused(tables: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Rows of name, clients and advice. A name that is refused by several clients with the same advice has one row."""
    clients: dict[tuple[str, str], list[str]] = {}
    for client, table in tables.items():
        for name, advice in table.items():
            clients.setdefault((name, advice), []).append(client)
    rows = [f"| `{name}` | {', '.join(found)} | {advice} |" for (name, advice), found in sorted(clients.items())]
    return ["| setting | clients | use instead |", "|---|---|---|", *rows]


if __name__ == "__main__":
    PAGE.write_text(page())
