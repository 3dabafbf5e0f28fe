"""Knowledge of the APIs about the broker, its disks, coordinators and access rules."""

from tests.compat.questions.knowledge import COORDINATES, Base, about
from tests.compat.questions.mutations import INT32_MAX, INT64_MAX, PARTITIONS, TOPIC_NAMES
from tests.compat.questions.question import FRESH
from tests.compat.questions.stage import PLAIN, PRODUCERS, SHARED_NAMES

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest

SOFTWARE = ("", "a", "-a", "a-", "a b", "ä", "A.b-C9", "x" * 300, ".", "a_b")
SMALL_ENUM = (0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, -1, 127)
BATCHED_KEYS_SINCE = 4


@about(ApiKey.API_VERSIONS, client_software_name=SOFTWARE, client_software_version=SOFTWARE)
def api_versions_bases(version: int) -> list[Base]:
    return [Base("versions", ApiVersionsRequest(client_software_name="ottla", client_software_version="1.0"))]


@about(ApiKey.DESCRIBE_CLUSTER, endpoint_type=(0, 1, 2, 3, -1, 127))
def describe_cluster_bases(version: int) -> list[Base]:
    return [Base("cluster", DescribeClusterRequest())]


@about(ApiKey.DESCRIBE_LOG_DIRS, topic=(*TOPIC_NAMES, *SHARED_NAMES), partitions=PARTITIONS)
def describe_log_dirs_bases(version: int) -> list[Base]:
    asked = [
        DescribableLogDirTopic(topic=PLAIN, partitions=[0, 1]),
        DescribableLogDirTopic(topic=PRODUCERS, partitions=[0]),
    ]
    return [Base("two topics", DescribeLogDirsRequest(topics=asked))]


@about(
    ApiKey.FIND_COORDINATOR, turn=COORDINATES, key_type=(0, 1, 2, 3, -1), coordinator_keys=("", "g", "g:x:0", "x" * 300)
)
def find_coordinator_bases(version: int) -> list[Base]:
    if version < BATCHED_KEYS_SINCE:
        return [Base("group", FindCoordinatorRequest(key="g"))]
    return [Base("group", FindCoordinatorRequest(coordinator_keys=["g"]))]


@about(
    ApiKey.INIT_PRODUCER_ID,
    turn=COORDINATES,
    transactional_id=("",),
    transaction_timeout_ms=(0, 1, -1, 900_000, 900_001, INT32_MAX),
    producer_id=(0, 1, -2, INT64_MAX),
    producer_epoch=(0, 1, -2, 32767),
)
def init_producer_id_bases(version: int) -> list[Base]:
    known = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    if version >= 3:
        known.producer_id, known.producer_epoch = 5, 0
    return [
        Base("new", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)),
        Base("next epoch", known, vary=version >= 3),
        Base("transactional", InitProducerIdRequest(transactional_id=f"{FRESH}-t", transaction_timeout_ms=60_000)),
    ]


@about(
    ApiKey.DESCRIBE_ACLS,
    resource_type_filter=SMALL_ENUM,
    pattern_type_filter=SMALL_ENUM,
    operation=SMALL_ENUM,
    permission_type=SMALL_ENUM,
)
def describe_acls_bases(version: int) -> list[Base]:
    asked = DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter="t",
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return [Base("topic", asked)]


@about(
    ApiKey.CREATE_ACLS,
    resource_type=SMALL_ENUM,
    resource_pattern_type=SMALL_ENUM,
    operation=SMALL_ENUM,
    permission_type=SMALL_ENUM,
    principal=("", "x", "User:", "User:*"),
)
def create_acls_bases(version: int) -> list[Base]:
    wanted = AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
    )
    return [Base("topic", CreateAclsRequest(creations=[wanted]))]


@about(
    ApiKey.DELETE_ACLS,
    resource_type_filter=SMALL_ENUM,
    pattern_type_filter=SMALL_ENUM,
    operation=SMALL_ENUM,
    permission_type=SMALL_ENUM,
)
def delete_acls_bases(version: int) -> list[Base]:
    wanted = DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter="t",
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return [Base("topic", DeleteAclsRequest(filters=[wanted]))]
