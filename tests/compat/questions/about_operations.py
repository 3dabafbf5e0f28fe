"""Knowledge of the APIs that move replicas and leaders, and of quotas."""

from tests.compat.questions.knowledge import WRITES, Base, about
from tests.compat.questions.mutations import INT32_MAX, PARTITIONS, TOPIC_NAMES
from tests.compat.questions.question import DATA, FRESH, Ask, Topic
from tests.compat.questions.stage import PLAIN, SHARED_NAMES

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages import alter_client_quotas
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, OpData
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

PREFERRED, UNCLEAN = 0, 1
EXACT, DEFAULT, ANY = 0, 1, 2
ENTITY_TYPES = ("user", "client-id", "ip", "", "x", "User")
QUOTA_KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
    "x",
    "",
)
QUOTA_VALUES = (1.0, 0.0, -1.0, 0.5, 1e18, 1e19, float("inf"))


@about(ApiKey.ALTER_REPLICA_LOG_DIRS, turn=WRITES, path=("", "/no-such-directory", "relative", DATA, f"{DATA}/"))
def alter_replica_log_dirs_bases(version: int) -> list[Base]:
    def ask(path: str, *partitions: int, name: str = FRESH) -> AlterReplicaLogDirsRequest:
        topic = AlterReplicaLogDirTopic(name=name, partitions=list(partitions))
        return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])

    twice = ask(DATA, 0)
    twice.dirs += ask("/no-such-directory", 0).dirs
    return [
        Base("where it is", ask(DATA, 0), (Topic(),)),
        Base("two partitions", ask(DATA, 0, 9), (Topic(),), vary=False),
        Base("a new partition", ask(DATA, 0, name=f"{FRESH}-new"), vary=False),
        Base("two directories", twice, (Topic(),), vary=False),
    ]


@about(ApiKey.ELECT_LEADERS, election_type=(PREFERRED, UNCLEAN, 2, -1, 127), topic=(*TOPIC_NAMES, *SHARED_NAMES))
def elect_leaders_bases(version: int) -> list[Base]:
    def ask(*partitions: int, kind: int = PREFERRED) -> ElectLeadersRequest:
        wanted = [TopicPartitions(topic=PLAIN, partitions=list(partitions))]
        return ElectLeadersRequest(election_type=kind if version else 0, topic_partitions=wanted, timeout_ms=5000)

    everything = ask()
    everything.topic_partitions = None
    bases = [
        Base("preferred", ask(0)),
        Base("several", ask(0, 1, 99), vary=False),
        Base("all", everything, vary=False),
        Base("one twice", ask(0, 0), vary=False),
    ]
    if version:
        bases.append(Base("unclean", ask(0, kind=UNCLEAN), vary=False))
    return bases


@about(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    turn=WRITES,
    name=TOPIC_NAMES,
    replicas=(0, 1, 2, -1, INT32_MAX),
    partition_index=PARTITIONS,
)
def alter_partition_reassignments_bases(version: int) -> list[Base]:
    def ask(replicas: list[int] | None) -> AlterPartitionReassignmentsRequest:
        partition = ReassignablePartition(partition_index=0, replicas=replicas)
        topic = ReassignableTopic(name=FRESH, partitions=[partition])
        return AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=5000)

    own = (Topic(),)
    return [
        Base("to where it is", ask([1]), own),
        Base("cancel", ask(None), own, vary=False),
        Base("to nowhere", ask([]), own, vary=False),
        Base("to one twice", ask([1, 1]), own, vary=False),
        Base("to an unknown broker", ask([2]), own, vary=False),
    ]


@about(ApiKey.LIST_PARTITION_REASSIGNMENTS, name=(*TOPIC_NAMES, PLAIN), partition_indexes=PARTITIONS)
def list_partition_reassignments_bases(version: int) -> list[Base]:
    asked = [ListPartitionReassignmentsTopics(name=PLAIN, partition_indexes=[0])]
    return [
        Base("one", ListPartitionReassignmentsRequest(topics=asked)),
        Base("all", ListPartitionReassignmentsRequest(topics=None), vary=False),
    ]


def quotas_of(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components],
        strict=strict,
    )


@about(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    entity_type=ENTITY_TYPES,
    match_type=(EXACT, DEFAULT, ANY, 3, -1),
    match=("a", "", "x"),
)
def describe_client_quotas_bases(version: int) -> list[Base]:
    return [
        Base("a user", quotas_of(("user", EXACT, "nobody-has-this-name"))),
        Base("any client", quotas_of(("client-id", ANY, None), strict=True)),
        Base("the default of an address", quotas_of(("ip", DEFAULT, None)), vary=False),
        Base("an address of a user", quotas_of(("ip", ANY, None), ("user", ANY, None)), vary=False),
        Base("one type twice", quotas_of(("user", ANY, None), ("user", DEFAULT, None)), vary=False),
        Base("nothing", quotas_of(), vary=False),
    ]


@about(
    ApiKey.ALTER_CLIENT_QUOTAS,
    turn=WRITES,
    entity_type=ENTITY_TYPES,
    entity_name=("", FRESH, "127.0.0.2", "no such host"),
    key=QUOTA_KEYS,
    value=QUOTA_VALUES,
)
def alter_client_quotas_bases(version: int) -> list[Base]:
    module = alter_client_quotas

    def ask(*entity: tuple[str, str | None], key: str, value: float, remove: bool = False) -> AlterClientQuotasRequest:
        named = [module.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        operation = OpData(key=key, value=value, remove=remove)
        return AlterClientQuotasRequest(entries=[module.EntryData(entity=named, ops=[operation])])

    then = (Ask(quotas_of(("user", EXACT, FRESH)), version, settles=True),)
    user, client = ("user", FRESH), ("client-id", FRESH)
    bases = [
        Base("a user", ask(user, key="producer_byte_rate", value=1e15), then=then),
        Base("a user's client", ask(user, client, key="consumer_byte_rate", value=1e15), then=then),
        Base("an address", ask(("ip", "127.0.0.3"), key="connection_creation_rate", value=1e6), vary=False),
        Base("an address and a user", ask(("ip", "127.0.0.3"), user, key="producer_byte_rate", value=1.0), vary=False),
        Base("remove", ask(user, key="producer_byte_rate", value=0.0, remove=True), then=then, vary=False),
        Base("one type twice", ask(user, user, key="producer_byte_rate", value=1.0), vary=False),
    ]
    return bases + [
        Base(f"{kind} {key}={value}", ask((kind, FRESH), key=key, value=value), then=then, vary=False)
        for kind in ("user", "client-id")
        for key in QUOTA_KEYS
        for value in QUOTA_VALUES
    ]
