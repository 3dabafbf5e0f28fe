"""UpdateFeatures: raise or lower the feature levels of the cluster.

Version 1 can try without doing; from version 2 the answer is one result for all.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int8, Int16, Int32, Struct, field


class FeatureUpdateKey(Struct):
    feature: str = field("0+")
    max_version_level: Int16 = field("0+")
    allow_downgrade: bool = field("0")
    upgrade_type: Int8 = field("1+", default=1)


class UpdateFeaturesRequest(Request, key=ApiKey.UPDATE_FEATURES, versions=(0, 2), flexible=0):
    timeout_ms: Int32 = field("0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = field("0+")
    validate_only: bool = field("1+")


class UpdatableFeatureResult(Struct):
    feature: str = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")


class UpdateFeaturesResponse(Response, answers=UpdateFeaturesRequest):
    throttle_time_ms: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: str | None = field("0+", nullable="0+")
    results: list[UpdatableFeatureResult] = field("0-1", ignorable=True)
