"""The cluster itself: its brokers, its controller and the levels of its features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Outcomes
from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

SOFTWARE = "ottla"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """`controller_id` is -1 where there is none now."""

    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerInfo, ...]


@dataclass(frozen=True, slots=True)
class VersionRange:
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class Features:
    """`finalized` is what the cluster goes by, `supported` what the broker that answered could do. `epoch` is -1 where
    the cluster keeps no such levels."""

    finalized: Mapping[str, VersionRange]
    supported: Mapping[str, VersionRange]
    epoch: int


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """A level to go to; 0 takes the feature away."""

    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


class ClusterAdmin(AdminPart):
    async def describe_cluster(
        self, *, include_fenced: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """Id, controller and brokers; with `include_fenced` also those that are registered and not in service."""
        call = self._call(timeout)

        async def ask() -> ClusterDescription:
            request = DescribeClusterRequest(include_fenced_brokers=include_fenced)
            answer = await call.to_any(request, DescribeClusterResponse)
            if answer.error_code:
                raise failure(answer.error_code, answer.error_message, "the cluster")
            brokers = sorted(answer.brokers, key=lambda broker: broker.broker_id)
            return ClusterDescription(
                answer.cluster_id,
                answer.controller_id,
                tuple(BrokerInfo(one.broker_id, one.host, one.port, one.rack, one.is_fenced) for one in brokers),
            )

        return await call.ask_until_answered(ask)

    async def describe_features(self, *, timeout: float | None = None) -> Features:
        """The features of the cluster and their levels; none where the cluster has no such thing."""
        call = self._call(timeout)

        async def ask() -> Features:
            request = ApiVersionsRequest(client_software_name=SOFTWARE, client_software_version="1")
            answer = await call.to_any(request, ApiVersionsResponse)
            if answer.error_code:
                raise failure(answer.error_code, None, "the features of the cluster")
            finalized = {
                one.name: VersionRange(one.min_version_level, one.max_version_level)
                for one in answer.finalized_features
            }
            supported = {one.name: VersionRange(one.min_version, one.max_version) for one in answer.supported_features}
            return Features(
                {name: finalized[name] for name in sorted(finalized)},
                {name: supported[name] for name in sorted(supported)},
                answer.finalized_features_epoch,
            )

        return await call.ask_until_answered(ask)

    async def update_features(
        self,
        levels: Mapping[str, int | FeatureLevel],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Raise or lower the levels of features. Newer brokers do all or none: then one error stands for all."""
        wanted = {
            name: FeatureLevel(level) if isinstance(level, int) else level for name, level in sorted(levels.items())
        }
        call = self._call(timeout)

        async def attempt(names: Sequence[str]) -> Outcomes[str, None]:
            request = UpdateFeaturesRequest(
                timeout_ms=call.attempt_ms(),
                feature_updates=[
                    FeatureUpdateKey(
                        feature=name, max_version_level=wanted[name].level, upgrade_type=wanted[name].upgrade_type
                    )
                    for name in names
                ],
                validate_only=validate_only,
            )
            answer = await call.to_controller(request, UpdateFeaturesResponse)
            if answer.error_code:
                raise failure(answer.error_code, answer.error_message, f"features {', '.join(names)}")
            told = {
                one.feature: failure(one.error_code, one.error_message, one.feature)
                for one in answer.results
                if one.error_code
            }
            return {name: told.get(name) for name in names}

        return await call.settle(wanted, attempt)
