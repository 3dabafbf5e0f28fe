"""An error code of an answer as an exception that names the thing it is about and says what to do."""

from collections.abc import Mapping

from ottla.client.errors import BrokerError, error_of
from ottla.protocol.errors import ErrorCode

ADVICE: Mapping[ErrorCode, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition: list the topics to see what there is",
    ErrorCode.UNKNOWN_TOPIC_ID: "no topic has this id: it was deleted, or made again under the same name",
    ErrorCode.TOPIC_ALREADY_EXISTS: "there is a topic of this name: describe it, or choose another name",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "use letters, digits, '.', '_' and '-', at most 249 of them",
    ErrorCode.INVALID_PARTITIONS: "partitions can only be added, and there is at least one",
    ErrorCode.INVALID_REPLICATION_FACTOR: "ask for no more replicas than there are brokers",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "name brokers that exist, each once, the same number for every partition",
    ErrorCode.INVALID_CONFIG: "describe the settings to see their names and values",
    ErrorCode.NOT_CONTROLLER: "the controller is changing: try again",
    ErrorCode.POLICY_VIOLATION: "ask for less, or ask the cluster's operators about its policy",
    ErrorCode.TOPIC_DELETION_DISABLED: "set delete.topic.enable on the brokers",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group: list the groups to see what there is",
    ErrorCode.NON_EMPTY_GROUP: "stop its consumers first, or wait until their sessions are over",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read the topic: stop them first",
    ErrorCode.UNKNOWN_MEMBER_ID: "members of the group are reading: stop them first, or name a member that it has",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is rebalancing: try again",
    ErrorCode.OFFSET_OUT_OF_RANGE: "choose an offset between the start and the end of the partition",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader now: describe the topic to see its replicas",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the partition's leader is changing: try again",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "its coordinator is not there yet: try again",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "its coordinator is still loading: try again",
    ErrorCode.NOT_COORDINATOR: "its coordinator is changing: try again",
    ErrorCode.REQUEST_TIMED_OUT: "it may be done later, or not: look before you ask again, with more time",
    ErrorCode.SECURITY_DISABLED: "the cluster has no authorizer: there is nothing to grant",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user needs rights on the cluster",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user needs rights on the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user needs rights on the group",
    ErrorCode.LOG_DIR_NOT_FOUND: "name a directory that the broker has",
    ErrorCode.KAFKA_STORAGE_ERROR: "a disk of the broker failed or is full: its log says which",
    ErrorCode.REPLICA_NOT_AVAILABLE: "the broker has no replica of the partition",
    ErrorCode.ELECTION_NOT_NEEDED: "the leader is already the one that would be elected",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "there is no move to call off",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "no producer has used this transactional id lately",
    ErrorCode.INVALID_TXN_STATE: "the transaction is not in a state that allows it",
    ErrorCode.RESOURCE_NOT_FOUND: "there is none of this name",
    ErrorCode.UNACCEPTABLE_CREDENTIAL: "the broker asks for another number of iterations, or a name and a password",
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for it, or does not have it",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "a quota of the cluster is used up: wait, or ask for less at once",
    ErrorCode.FEATURE_UPDATE_FAILED: "describe the features to see which levels are supported",
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker's log says more",
}


def failure(code: int, said: str | None, subject: object) -> BrokerError:
    """The exception for what a broker answered about `subject`; `said` is the broker's own message, if it had one."""
    known = ErrorCode(code)
    text = f"{subject}: {said.rstrip('.') if said else known.name.lower().replace('_', ' ')}"
    advice = ADVICE.get(known)
    text = f"{text} ({known.name if known == code else code})"
    return error_of(known, f"{text}; {advice}" if advice else text)
