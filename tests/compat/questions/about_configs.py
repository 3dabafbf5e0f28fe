"""Knowledge of the APIs that describe and change settings."""

from tests.compat.questions.about_topics import TOPIC, TOPIC_SETTINGS, settings_of
from tests.compat.questions.knowledge import WRITES, Base, about
from tests.compat.questions.mutations import TOPIC_NAMES
from tests.compat.questions.question import FRESH, Topic
from tests.compat.questions.stage import PLAIN, SHARED_NAMES, SMALL

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages import incremental_alter_configs
from ottla.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest

BROKER, LOGGER, CLIENT_METRICS, GROUP = 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
RESOURCE_TYPES = (0, 1, TOPIC, 3, BROKER, LOGGER, CLIENT_METRICS, GROUP, 64, -1, 127)
SHARED_KEYS = [
    "message.max.bytes",
    "log.retention.ms",
    "log.segment.bytes",
    "log.cleaner.min.compaction.lag.ms",
    "num.partitions",
    "auto.create.topics.enable",
    "compression.type",
    "no.such.key",
]
# Settings that belong to a name, whether or not there is something of that name.
GROUP_SETTINGS: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("consumer.session.timeout.ms", ("50000", "44999", "x")),
    ("share.auto.offset.reset", ("earliest", "by_duration:PT1H", "by_duration:-PT1H", "none")),
    ("share.isolation.level", ("read_committed", "x")),
    ("share.record.lock.duration.ms", ("15000", "14999", "60001")),
    ("share.delivery.count.limit", ("2", "1", "11")),
    ("share.partition.max.record.locks", ("4000", "4001", "99")),
    ("streams.num.standby.replicas", ("2", "3")),
    ("streams.initial.rebalance.delay.ms", ("0", "-1")),
    ("no.such.key", ("x",)),
)
SUBSCRIPTION_SETTINGS: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("interval.ms", ("100", "99", "3600000", "3600001", "x", None)),
    ("metrics", ("", "*", "org.apache.kafka.,b", ",")),
    ("match", ("", "client_id=a.*", " client_id = a ", "client_id=[", "client_id", "x=a", "client_id=a=b", "a,")),
    ("no.such.key", ("x",)),
)
# Settings of brokers that can change, good and bad values; only checked, so that nothing else is disturbed.
BROKER_SETTINGS: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("message.max.bytes", ("1000", "-1", "x", None)),
    ("log.retention.ms", ("1000", "-1", "-2", "0")),
    ("log.retention.bytes", ("-1", "1000")),
    ("log.segment.bytes", ("1048576", "13")),
    ("log.cleanup.policy", ("compact", "delete", "x", "")),
    ("log.cleaner.threads", ("1", "0", "100")),
    ("log.cleaner.backoff.ms", ("100", "-1")),
    ("max.connections", ("0", "100", "-1")),
    ("max.connections.per.ip", ("0", "100")),
    ("compression.type", ("gzip", "x")),
    ("num.partitions", ("2",)),
    ("node.id", ("2",)),
    ("log.dirs", ("x",)),
    ("num.io.threads", ("9", "0", "x")),
    ("metric.reporters", ("",)),
    ("remote.log.reader.threads", ("11", "0")),
    ("group.coordinator.cached.buffer.max.bytes", ("524288", "1")),
    ("sasl.kerberos.min.time.before.relogin", ("1000", "x")),
    ("authorizer.class.name", ("x",)),
    ("auto.create.topics.enable", ("false",)),
    ("no.such.key", ("x",)),
    ("unclean.leader.election.enable", ("true", "x")),
    ("log.message.timestamp.type", ("LogAppendTime", "x")),
)


@about(
    ApiKey.DESCRIBE_CONFIGS,
    resource_type=RESOURCE_TYPES,
    resource_name=(*TOPIC_NAMES, "1", "2", "-1", "x", *SHARED_NAMES),
    configuration_keys=("retention.ms", "no.such.key", "", "message.max.bytes"),
)
def describe_configs_bases(version: int) -> list[Base]:
    def ask(kind: int, name: str, keys: list[str] | None = None, *, synonyms: bool = False) -> DescribeConfigsRequest:
        wanted = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        return DescribeConfigsRequest(resources=[wanted], include_synonyms=synonyms)

    several = ask(TOPIC, PLAIN)
    several.resources += [*ask(TOPIC, "no-such-topic").resources, *ask(BROKER, "1", ["num.partitions"]).resources]
    documented = ask(TOPIC, PLAIN, synonyms=True)
    documented.include_documentation = version >= 3
    return [
        Base("topic", ask(TOPIC, PLAIN)),
        Base("one key", ask(TOPIC, SMALL, ["max.message.bytes"], synonyms=True)),
        Base("with synonyms", ask(TOPIC, SMALL, synonyms=True), vary=False),
        Base("with documentation", documented, vary=False),
        Base("this broker", ask(BROKER, "1", SHARED_KEYS, synonyms=True), vary=False),
        Base("this broker, all keys", ask(BROKER, "1", synonyms=True), vary=False),
        Base("all brokers", ask(BROKER, "", None), vary=False),
        Base("another broker", ask(BROKER, "2"), vary=False),
        Base("a group", ask(GROUP, "settings", synonyms=True), vary=False),
        Base("a subscription", ask(CLIENT_METRICS, "settings", synonyms=True), vary=False),
        Base("no group", ask(GROUP, ""), vary=False),
        Base("no subscription", ask(CLIENT_METRICS, ""), vary=False),
        Base("no broker", ask(BROKER, "x"), vary=False),
        Base("several", several, vary=False),
        *(Base(f"type {kind}", ask(kind, "1", ["x"]), vary=False) for kind in RESOURCE_TYPES),
    ]


def alteration(
    kind: int, name: str, configs: dict[str, str | None], *, only_check: bool = False
) -> AlterConfigsRequest:
    changed = [AlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=changed)
    return AlterConfigsRequest(resources=[resource], validate_only=only_check)


@about(
    ApiKey.ALTER_CONFIGS,
    turn=WRITES,
    resource_type=RESOURCE_TYPES,
    resource_name=(*TOPIC_NAMES, "1", "2"),
    resources__configs__name=("retention.ms", "no.such.key", "", "cleanup.policy"),
    resources__configs__value=("1000", "", "x", "-2"),
)
def alter_configs_bases(version: int) -> list[Base]:
    own, then = (Topic(configs={"segment.ms": "5000"}),), (settings_of(FRESH),)
    bases = [
        Base("topic", alteration(TOPIC, FRESH, {"retention.ms": "1000"}), own, then),
        Base("several keys", alteration(TOPIC, FRESH, {"retention.ms": "1", "flush.ms": "2"}), own, then, vary=False),
        Base("nothing", alteration(TOPIC, FRESH, {}), own, then, vary=False),
        Base("only checked", alteration(TOPIC, FRESH, {"flush.ms": "2"}, only_check=True), own, then, vary=False),
        Base("two topics", _two_topics(), (*own, Topic(f"{FRESH}-b")), then, vary=False),
    ]
    bases += [
        Base(f"{name}={value}", alteration(TOPIC, PLAIN, {name: value}, only_check=True), vary=False)
        for name, values in TOPIC_SETTINGS
        for value in values
    ]
    return bases + [
        Base(f"broker {name}={value}", alteration(BROKER, "1", {name: value}, only_check=True), vary=False)
        for name, values in BROKER_SETTINGS
        for value in values
    ]


def _two_topics() -> AlterConfigsRequest:
    request = alteration(TOPIC, FRESH, {"flush.ms": "x"})
    request.resources += alteration(TOPIC, f"{FRESH}-b", {"flush.ms": "7"}).resources
    return request


def increment(
    kind: int, name: str, *changes: tuple[str, int, str | None], only_check: bool = False
) -> IncrementalAlterConfigsRequest:
    module = incremental_alter_configs
    changed = [
        module.AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in changes
    ]
    resource = module.AlterConfigsResource(resource_type=kind, resource_name=name, configs=changed)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=only_check)


@about(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    turn=WRITES,
    resource_type=RESOURCE_TYPES,
    resource_name=(*TOPIC_NAMES, "1", "2"),
    # Not others: Kafka's controller resigns over them.
    config_operation=(SET, DELETE, APPEND, SUBTRACT),
    resources__configs__name=("retention.ms", "no.such.key", "", "cleanup.policy"),
    resources__configs__value=("1000", "", "x", "-2", "compact"),
)
def incremental_alter_configs_bases(version: int) -> list[Base]:
    own, then = (Topic(configs={"segment.ms": "5000"}),), (settings_of(FRESH),)
    changes: dict[str, tuple[tuple[str, int, str | None], ...]] = {
        "set": (("retention.ms", SET, "1000"),),
        "delete": (("segment.ms", DELETE, None),),
        "delete what is not set": (("flush.ms", DELETE, "x"),),
        "delete an unknown key": (("no.such.key", DELETE, None),),
        "append": (("cleanup.policy", APPEND, "compact"),),
        "append what is there": (("cleanup.policy", APPEND, "delete"),),
        "append nothing": (("cleanup.policy", APPEND, ""),),
        "append two": (("cleanup.policy", APPEND, "compact,delete"),),
        "append null": (("cleanup.policy", APPEND, None),),
        "append to no list": (("retention.ms", APPEND, "1"),),
        "append to an unknown key": (("no.such.key", APPEND, "1"),),
        "subtract": (("cleanup.policy", SUBTRACT, "delete"),),
        "subtract what is not there": (("cleanup.policy", SUBTRACT, "compact"),),
        "subtract null": (("cleanup.policy", SUBTRACT, None),),
        "subtract from no list": (("retention.ms", SUBTRACT, "1"),),
        "append throttled": (("leader.replication.throttled.replicas", APPEND, "0:1"),),
        "set and delete": (("retention.ms", SET, "7"), ("segment.ms", DELETE, None)),
        "one key twice": (("retention.ms", SET, "7"), ("retention.ms", SET, "8")),
        "one key set and deleted": (("retention.ms", SET, "7"), ("retention.ms", DELETE, None)),
        "one good, one bad": (("retention.ms", SET, "7"), ("segment.ms", SET, "x")),
        "nothing": (),
    }
    bases = [
        Base(label, increment(TOPIC, FRESH, *given), own, then, vary=label in ("set", "append"))
        for label, given in changes.items()
    ]
    bases += [
        Base(f"{name}={value}", increment(TOPIC, FRESH, (name, SET, value)), own, then, vary=False)
        for name, values in TOPIC_SETTINGS
        for value in values
    ]
    for place in ("1", "", "2", "x"):
        bases += [
            Base(
                f"broker {place!r} {name}={value}",
                increment(BROKER, place, (name, SET, value), only_check=True),
                vary=False,
            )
            for name, values in BROKER_SETTINGS
            for value in (values if place in ("1", "") else values[:1])
        ]
    for kind, settings in ((GROUP, GROUP_SETTINGS), (CLIENT_METRICS, SUBSCRIPTION_SETTINGS)):
        bases += [
            Base(
                f"type {kind}: {name}={value}",
                increment(kind, "named", (name, SET, value), only_check=True),
                vary=False,
            )
            for name, values in settings
            for value in values
        ]
    return bases


@about(ApiKey.LIST_CONFIG_RESOURCES, resource_types=(TOPIC, BROKER, CLIENT_METRICS, GROUP, LOGGER, 0, 1, 3, -1, 127))
def list_config_resources_bases(version: int) -> list[Base]:
    return [Base("all", ListConfigResourcesRequest(resource_types=[]))]
