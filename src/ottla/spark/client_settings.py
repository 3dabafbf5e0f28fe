"""From the `kafka.*` options of a data source to the settings of a client.

Spark's connector hands every option that begins with `kafka.` to Kafka's clients; so does this, to ours. What the
connector refuses is refused here too, in the driver, with the option's name and what to do in its place; so is what
only Java could do. Option names come in any case of letters, Kafka's names have none but small ones.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from ottla.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig, resolve
from ottla.client.config_settings import settings_of
from ottla.client.errors import ConfigError

Role = Literal["source", "sink", "admin"]

PREFIX: Final = "kafka."
_BOOTSTRAP = "bootstrap.servers"
_KINDS: Final[dict[str, type[ClientConfig]]] = {"source": ConsumerConfig, "sink": ProducerConfig, "admin": AdminConfig}
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_STORES = ("ssl.truststore.location", "ssl.keystore.location")

_AS_BYTES = "{} are binary columns: turn them into what you need with DataFrame functions, such as cast or from_json"
_TO_BYTES = "{} are written as they are: make them string or binary columns with DataFrame functions, such as to_json"
_NO_JAVA = "a Java class cannot run here: {}"
_REFUSED: Final[dict[str, dict[str, str]]] = {
    "source": {
        "auto.offset.reset": "set startingOffsets to earliest, latest or offsets in JSON; it holds for new queries, "
        "and a restarted one goes on where it was",
        "key.deserializer": _AS_BYTES.format("keys"),
        "value.deserializer": _AS_BYTES.format("values"),
        "enable.auto.commit": "Spark keeps the offsets in its checkpoint; to see a query's lag in Kafka's tools, let "
        "it publish them to a group",
        "interceptor.classes": _NO_JAVA.format("change records with DataFrame functions"),
    },
    "sink": {
        "key.serializer": _TO_BYTES.format("keys"),
        "value.serializer": _TO_BYTES.format("values"),
        "interceptor.classes": _NO_JAVA.format("change records with DataFrame functions"),
        "partitioner.class": _NO_JAVA.format("add a column named partition to choose partitions yourself"),
        "transactional.id": "transactional ids are the sink's own affair: set deliveryGuarantee to exactly-once, and "
        "transactionalIdPrefix if their names matter",
    },
    "admin": {},
}


def client_settings(options: Mapping[str, str], *, role: Role) -> dict[str, object]:
    """The settings among the options of a data source, by Kafka's names, ready for `config=` of a client.

    Raises ConfigError for an option that this role refuses, a value that no client takes, and a store that only Java
    reads. For `admin` only what an admin client has is left, so that one mapping of options serves all three.
    """
    given = {name[len(PREFIX) :].lower(): value for name, value in options.items() if name.lower().startswith(PREFIX)}
    if not str(given.get(_BOOTSTRAP, "")).strip():
        raise ConfigError(
            f"option {PREFIX}{_BOOTSTRAP} is missing: name at least one broker, such as "
            f'.option("{PREFIX}{_BOOTSTRAP}", "localhost:9092")'
        )
    for name, advice in _REFUSED[role].items():
        if name in given:
            raise ConfigError(f"option {PREFIX}{name} is not supported: {advice}")
    settings: dict[str, object] = dict(given)
    if role == "admin":
        settings = {name: value for name, value in given.items() if not _belongs_to_others(name)}
    for name in _STORES:
        if name in given:
            _refuse_java_store(name, given[name])
    try:
        resolve(_KINDS[role], config=settings)
    except ConfigError as error:
        where = f"option {PREFIX}" if _names_setting(error, given) else f"among the {PREFIX}* options: "
        raise ConfigError(f"{where}{error}") from None
    return settings


def _belongs_to_others(name: str) -> bool:
    """Whether it is a setting of producers or consumers that an admin client has not."""

    def names_of(kind: type[ClientConfig]) -> set[str]:
        return {known for found in settings_of(kind).values() for known in (found.name, *found.aliases)}

    return name in (names_of(ProducerConfig) | names_of(ConsumerConfig)) - names_of(AdminConfig)


def _names_setting(error: ConfigError, given: Mapping[str, str]) -> bool:
    """Whether the client's complaint begins with a setting that came as an option."""
    return str(error).split(" ", 1)[0] in given


def _refuse_java_store(name: str, location: str) -> None:
    """Only where the file is on this machine; an executor's client says the same of its own."""
    try:
        with Path(location).open("rb") as store:
            is_java_store = store.read(len(_JKS_MAGIC)) == _JKS_MAGIC
    except OSError:
        return
    if is_java_store:
        converted = str(Path(location).with_suffix(".p12"))
        raise ConfigError(
            f"option {PREFIX}{name}={location} is a Java key store (JKS), which only Java reads. Convert it with "
            f"`keytool -importkeystore -srckeystore {location} -destkeystore {converted} -deststoretype PKCS12`, then "
            f"set {PREFIX}{name} to {converted} and {PREFIX}{name.replace('location', 'type')} to PKCS12"
        )
