"""The admin client: everything that is asked or changed about a cluster, with typed results.

| module          | holds                                                                                          |
|-----------------|------------------------------------------------------------------------------------------------|
| `admin`         | `AsyncAdmin`, made of the themes below; `reader` has the few that readers of topics need        |
| `life`          | settings and connections of an admin client, whatever its themes                               |
| `call`          | one call: which brokers are asked, what is asked again, and until when                         |
| `heard`         | waiting until brokers have heard of what the controller decided                                |
| `results`       | `Results`: one value or error for each thing that was asked for                                |
| `failures`      | error codes as exceptions that say what to do                                                  |
| `topics`, `topic_pages`, `partitions`, `configs`, `groups`, `group_members`, `group_offsets`, `offsets`, `log_dirs`,
  `cluster`, `producers`, `quotas`, `scram` | a theme each: its values, and the methods of `AsyncAdmin` about it   |
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_HOMES = {
    "AsyncAdmin": "admin",
    "Progress": "base",
    "BrokerInfo": "cluster",
    "ClusterDescription": "cluster",
    "FeatureLevel": "cluster",
    "Features": "cluster",
    "UpgradeType": "cluster",
    "VersionRange": "cluster",
    "Append": "configs",
    "ConfigEntry": "configs",
    "ConfigResource": "configs",
    "ConfigSource": "configs",
    "ConfigSynonym": "configs",
    "ConfigType": "configs",
    "ResourceType": "configs",
    "Subtract": "configs",
    "GroupDescription": "group_members",
    "GroupMember": "group_members",
    "GroupListing": "groups",
    "MemberToRemove": "groups",
    "LogDir": "log_dirs",
    "ReplicaInfo": "log_dirs",
    "TopicPartitionReplica": "log_dirs",
    "DeleteBefore": "offsets",
    "OffsetSpec": "offsets",
    "Election": "partitions",
    "NewPartitions": "partitions",
    "Reassignment": "partitions",
    "FencedProducer": "producers",
    "ProducerState": "producers",
    "TransactionDescription": "producers",
    "TransactionListing": "producers",
    "ANY": "quotas",
    "DEFAULT": "quotas",
    "QuotaEntity": "quotas",
    "Results": "results",
    "ScramCredential": "scram",
    "ScramDelete": "scram",
    "ScramMechanism": "scram",
    "ScramUpsert": "scram",
    "PartitionDescription": "topic_pages",
    "TopicDescription": "topic_pages",
    "CreatedTopic": "topics",
    "NewTopic": "topics",
    "TopicListing": "topics",
}


def __getattr__(name: str) -> object:
    """A theme is loaded when something of it is first asked for (PEP 562): most users need one or two of them."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
