"""Settings of Apache Kafka that promise protection which this broker does not have.

A broker that ignored one would serve everybody while its operator believes otherwise. So it does not start with them,
and they cannot be set while it runs. What asks for no protection (an empty value, `ssl.client.auth=none`) is accepted.

A protocol in `listener.security.protocol.map` promises nothing by itself: Kafka's own server.properties maps names that
no listener has. The listeners are checked against it where they are read.
"""

import re
from collections.abc import Iterable, Mapping

from ottla.broker.config_foreign import UNUSED_KEYS

_ENCRYPTION = "encryption (TLS)"
_AUTHENTICATION = "authentication (SASL)"
_IDENTITY = "authentication (TLS or SASL)"
_ACCESS_RULES = "access rules (ACLs)"
_POLICIES = "policies that refuse requests"
_STORED = "protection of what is stored about the cluster"

# By what the names begin with.
_PROMISES = {
    "ssl.": _ENCRYPTION,
    "sasl.": _AUTHENTICATION,
    "delegation.token.": _AUTHENTICATION,
    "connections.max.reauth.": _AUTHENTICATION,
    "connection.failed.authentication.": _AUTHENTICATION,
    "security.": _IDENTITY,
    "principal.": _IDENTITY,
    "authorizer.": _ACCESS_RULES,
    "super.users": _ACCESS_RULES,
    "allow.everyone.if.no.acl.found": _ACCESS_RULES,
    "create.topic.policy.": _POLICIES,
    "alter.config.policy.": _POLICIES,
    "client.quota.callback.": _POLICIES,
    "password.encoder.": _STORED,
    "zookeeper.set.acl": _STORED,
    "zookeeper.ssl.": _STORED,
}
# Values that ask for no protection, in lower case; an empty one never does.
_ASKING_FOR_NOTHING = {
    "ssl.client.auth": "none",
    "security.protocol": "plaintext",
    "security.inter.broker.protocol": "plaintext",
    "connections.max.reauth.ms": "0",
    "allow.everyone.if.no.acl.found": "true",
    "zookeeper.set.acl": "false",
    "zookeeper.ssl.client.enable": "false",
}
# Of one listener, and there maybe of one mechanism: listener.name.internal.scram-sha-512.sasl.jaas.config
_OF_A_LISTENER = re.compile(r"listener\.name\.[^.]+\.(?:[^.]+\.(?=sasl\.))?")


def missing_protection(properties: Mapping[str, str]) -> str | None:
    """Why a broker must not run with these settings; None where none of them promises what it does not have.

    Values are never part of the text: they may be passwords.
    """
    broken: dict[str, list[str]] = {}
    for name, value in sorted(properties.items()):
        promise = _promise_of(name, value)
        if promise is not None:
            broken.setdefault(promise, []).append(name)
    if not broken:
        return None
    promises = "; ".join(f"{_listed(names)} {promise}" for promise, names in broken.items())
    return (
        f"{promises}: this broker does not have that yet, and would serve everybody who reaches its port. "
        "Remove the settings and let only trusted clients reach the port, or stay with a broker that has it"
    )


def _promise_of(name: str, value: str) -> str | None:
    if name in UNUSED_KEYS:
        return None
    plain = _OF_A_LISTENER.sub("", name, count=1)
    promise = next((promise for prefix, promise in _PROMISES.items() if plain.startswith(prefix)), None)
    asks_for_nothing = value.strip().lower() in ("", _ASKING_FOR_NOTHING.get(plain))
    return None if asks_for_nothing else promise


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    return f"{', '.join(listed)} {'promises' if len(listed) == 1 else 'promise'}"
