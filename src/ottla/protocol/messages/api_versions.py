"""ApiVersions: which APIs a broker serves, and in which versions; the first request on a connection.

A client cannot know yet what the broker understands. So an unknown version is answered in version 0 with
UNSUPPORTED_VERSION and the versions of this API, and the header of the answer is never flexible. Version 3 added the
client's name and the features of the cluster; up to version 3 a feature with a lowest level of 0 must be left out.
"""

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.message import Request, Response
from ottla.protocol.schema import Int16, Int32, Int64, Struct, field


class ApiVersionsRequest(Request, key=ApiKey.API_VERSIONS, versions=(0, 4), flexible=3):
    client_software_name: str = field("3+", ignorable=True)
    client_software_version: str = field("3+", ignorable=True)


class ApiVersion(Struct):
    api_key: Int16 = field("0+")
    min_version: Int16 = field("0+")
    max_version: Int16 = field("0+")


class SupportedFeatureKey(Struct):
    name: str = field("3+")
    min_version: Int16 = field("3+")
    max_version: Int16 = field("3+")


class FinalizedFeatureKey(Struct):
    name: str = field("3+")
    max_version_level: Int16 = field("3+")
    min_version_level: Int16 = field("3+")


class ApiVersionsResponse(Response, answers=ApiVersionsRequest):
    error_code: Int16 = field("0+")
    api_keys: list[ApiVersion] = field("0+")
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field("3+", tag=0, ignorable=True)
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field("3+", tag=2, ignorable=True)
    zk_migration_ready: bool = field("3+", tag=3, ignorable=True)
