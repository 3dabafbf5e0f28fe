"""ApiVersions (key 18): which APIs are offered, in which versions.

| version | what changed                                                                |
|---------|-----------------------------------------------------------------------------|
| 3       | flexible; the client names its software (KIP-511); features (KIP-584)       |
| 4       | features that start at version 0 may be listed                              |

Of the features that Kafka's clusters have, two are for clients. `transaction.version` at level 2: they leave it
to the broker to add partitions to transactions, and get a new epoch with each (KIP-890). `group.version` at level 1:
groups may use the protocol of the next generation (KIP-848).

The answer is derived from the handlers that exist. Its header is version 0 whatever the version asked for, and
a version that is not known gets a version 0 answer with UNSUPPORTED_VERSION, so that any client can step down.
"""

import re
from typing import TYPE_CHECKING

from ottla.broker.dispatch import RequestContext, serves
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

SOFTWARE_SINCE_VERSION = 3
LOWEST_LEVEL_SINCE_VERSION = 4
FEATURE_LEVELS = {"group.version": 1, "transaction.version": 2}
# Levels never change while a cluster lives, so the epoch of their last change is the first.
FEATURES_EPOCH = 0
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@serves(ApiVersionsRequest)
def handle(broker: "Broker", context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.api_version >= SOFTWARE_SINCE_VERSION:
        name, version = request.client_software_name, request.client_software_version
        if not SOFTWARE_NAME.fullmatch(name) or not SOFTWARE_NAME.fullmatch(version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.connection.client_software = f"{name} {version}"
    supported = [
        SupportedFeatureKey(name=feature, min_version=0, max_version=level) for feature, level in FEATURE_LEVELS.items()
    ]
    finalized = [
        FinalizedFeatureKey(name=feature, max_version_level=level, min_version_level=level)
        for feature, level in FEATURE_LEVELS.items()
    ]
    return ApiVersionsResponse(
        api_keys=_offered(broker),
        supported_features=supported if context.api_version >= LOWEST_LEVEL_SINCE_VERSION else [],
        finalized_features_epoch=FEATURES_EPOCH,
        finalized_features=finalized,
    )


def unsupported_version(broker: "Broker") -> ApiVersionsResponse:
    """What a client newer than this broker gets: the error, and the versions of ApiVersions itself."""
    own = [offered for offered in _offered(broker) if offered.api_key == ApiVersionsRequest.API_KEY]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def _offered(broker: "Broker") -> list[ApiVersion]:
    return [
        ApiVersion(
            api_key=handler.api_key,
            min_version=handler.advertised_min_version,
            max_version=handler.max_version,
        )
        for handler in broker.dispatcher.handlers
    ]
