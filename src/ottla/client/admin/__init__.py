"""The admin client: everything that is asked or changed about a cluster, with typed results.

| module          | holds                                                                                          |
|-----------------|------------------------------------------------------------------------------------------------|
| `admin`         | `AsyncAdmin`, made of the themes below                                                         |
| `call`          | one call: which brokers are asked, what is asked again, and until when                         |
| `results`       | `Results`: one value or error for each thing that was asked for                                |
| `failures`      | error codes as exceptions that say what to do                                                  |
| `topics`, `topic_pages`, `partitions`, `configs`, `groups`, `group_members`, `group_offsets`, `offsets`, `log_dirs`,
  `cluster`, `producers`, `quotas`, `scram` | a theme each: its values, and the methods of `AsyncAdmin` about it   |
"""

from ottla.client.admin.admin import AsyncAdmin
from ottla.client.admin.base import Progress
from ottla.client.admin.cluster import (
    BrokerInfo,
    ClusterDescription,
    FeatureLevel,
    Features,
    UpgradeType,
    VersionRange,
)
from ottla.client.admin.configs import (
    Append,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    ResourceType,
    Subtract,
)
from ottla.client.admin.group_members import GroupDescription, GroupMember
from ottla.client.admin.groups import GroupListing, MemberToRemove
from ottla.client.admin.log_dirs import LogDir, ReplicaInfo, TopicPartitionReplica
from ottla.client.admin.offsets import DeleteBefore, OffsetSpec
from ottla.client.admin.partitions import Election, NewPartitions, Reassignment
from ottla.client.admin.producers import FencedProducer, ProducerState, TransactionDescription, TransactionListing
from ottla.client.admin.quotas import ANY, DEFAULT, QuotaEntity
from ottla.client.admin.results import Results
from ottla.client.admin.scram import ScramCredential, ScramDelete, ScramMechanism, ScramUpsert
from ottla.client.admin.topic_pages import PartitionDescription, TopicDescription
from ottla.client.admin.topics import CreatedTopic, NewTopic, TopicListing

__all__ = [
    "ANY",
    "DEFAULT",
    "Append",
    "AsyncAdmin",
    "BrokerInfo",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "CreatedTopic",
    "DeleteBefore",
    "Election",
    "FeatureLevel",
    "Features",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "LogDir",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionDescription",
    "ProducerState",
    "Progress",
    "QuotaEntity",
    "Reassignment",
    "ReplicaInfo",
    "ResourceType",
    "Results",
    "ScramCredential",
    "ScramDelete",
    "ScramMechanism",
    "ScramUpsert",
    "Subtract",
    "TopicDescription",
    "TopicListing",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "UpgradeType",
    "VersionRange",
]
