"""`sasl.jaas.config`, the text in which Java clients carry their credentials.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

One login module, a control flag, options, a semicolon. Values may be quoted; a backslash takes the next letter as it
is.
"""

import re

from ottla.client.errors import ConfigError

MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
}
_FLAGS = ("required", "requisite", "sufficient", "optional")
_HEAD = re.compile(r"\s*([\w.$]+)\s+(\w+)\s*")
_OPTION = re.compile(r'\s*([\w.$-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))', re.DOTALL)
_END = re.compile(r"\s*;\s*")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def options_of(text: str, mechanism: str) -> dict[str, str]:
    """The options of the login module, which must be one for `mechanism`; or ConfigError, without a secret in it."""
    head = _HEAD.match(text)
    if head is None or head.group(2).lower() not in _FLAGS:
        raise _refusal("it begins with a login module and `required`")
    module = head.group(1)
    if module not in MODULES:
        raise _refusal(f"it has the login module {module}, but only {', '.join(MODULES)} are known")
    if mechanism not in MODULES[module]:
        raise _refusal(f"{module} is for {' and '.join(MODULES[module])}, but sasl.mechanism is {mechanism}")
    options: dict[str, str] = {}
    position = head.end()
    while (option := _OPTION.match(text, position)) is not None:
        quoted = option.group(2)
        options[option.group(1)] = option.group(3) if quoted is None else _ESCAPE.sub(r"\1", quoted)
        position = option.end()
    if _END.fullmatch(text, position) is None:
        raise _refusal('its options are written as name="value", with a semicolon behind the last')
    return options


def _refusal(reason: str) -> ConfigError:
    return ConfigError(
        f"sasl.jaas.config cannot be used: {reason}. For PLAIN and SCRAM, sasl_username and sasl_password are simpler"
    )
