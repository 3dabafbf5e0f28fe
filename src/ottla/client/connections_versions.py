"""Which version of a request a broker understands, and the request in it."""

from collections.abc import Iterable

from ottla.client.errors import InvalidRequest, UnsupportedByBroker
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.encoder import Part
from ottla.protocol.errors import ErrorCode, UnencodableMessage, UnsupportedVersion
from ottla.protocol.message import Request, Response


class Plan:
    """How one version of a request is sent and its answer read: worked out once."""

    __slots__ = (
        "answer",
        "api_key",
        "client_id_bytes",
        "has_tags",
        "has_throttle",
        "is_api_versions",
        "name",
        "tail",
        "version",
    )

    def __init__(self, request: type[Request], version: int, client_id: bytes) -> None:
        is_flexible = request.is_flexible(version)
        self.name = request.__name__.removesuffix("Request")
        self.api_key = int(request.API_KEY)
        self.version = version
        self.client_id_bytes = len(client_id)
        self.tail = client_id + b"\0" if is_flexible else client_id
        self.answer: type[Response] = request.RESPONSE
        self.is_api_versions = request.API_KEY is ApiKey.API_VERSIONS
        self.has_tags = is_flexible and not self.is_api_versions
        self.has_throttle = any(one.name == "throttle_time_ms" for one in self.answer.FIELDS)


class Versions:
    """What one broker told about itself. Until then, only what a client may send first can be encoded."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id.encode()
        self._ranges: dict[int, tuple[int, int]] = {int(ApiKey.API_VERSIONS): (0, 32767)}
        self._plans: dict[type[Request], Plan] = {}
        self._lower_plans: dict[tuple[type[Request], int], Plan] = {}
        self.are_known = False

    def learn(self, ranges: Iterable[tuple[int, int, int]]) -> None:
        """API keys with their lowest and highest version."""
        self._ranges = {key: (low, high) for key, low, high in ranges}
        self._plans.clear()
        self._lower_plans.clear()
        self.are_known = True

    def highest(self, request: type[Request]) -> int | None:
        """The newest version that both sides have; None when there is none."""
        offered = self._ranges.get(int(request.API_KEY))
        if offered is None:
            return None
        version = min(offered[1], request.MAX_VERSION)
        return version if version >= self._lowest(request) else None

    def encode(self, request: Request, max_version: int | None) -> tuple[Plan, list[Part]]:
        """In the newest version that both sides have, that is allowed, and that can carry what the request says."""
        kind = type(request)
        plan = self._plans.get(kind) or self._first_plan(kind)
        if max_version is not None and plan.version > max_version:
            plan = self._plan(kind, max_version)
        try:
            return plan, request.encode_parts(plan.version)
        except UnsupportedVersion as error:
            return self._encode_lower(request, plan.version, error)
        except UnencodableMessage as error:
            raise InvalidRequest(f"the request cannot be sent: {error}") from error

    def _encode_lower(self, request: Request, refused: int, first_error: UnsupportedVersion) -> tuple[Plan, list[Part]]:
        kind = type(request)
        for version in range(refused - 1, self._lowest(kind) - 1, -1):
            try:
                return self._plan(kind, version), request.encode_parts(version)
            except UnsupportedVersion:
                continue
            except UnencodableMessage:
                break
        name = kind.__name__.removesuffix("Request")
        text = f"no version of {name} that the broker has can carry this: {first_error}. A newer broker may have one"
        raise UnsupportedByBroker(ErrorCode.UNSUPPORTED_VERSION, text) from first_error

    def _lowest(self, request: type[Request]) -> int:
        return max(self._ranges[int(request.API_KEY)][0], request.MIN_VERSION)

    def _first_plan(self, request: type[Request]) -> Plan:
        version = self.highest(request)
        if version is None:
            offered = self._ranges.get(int(request.API_KEY))
            has = "does not have it" if offered is None else f"has versions {offered[0]} to {offered[1]}"
            raise UnsupportedByBroker(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{request.__name__.removesuffix('Request')} is spoken here in versions {request.MIN_VERSION} to "
                f"{request.MAX_VERSION}, but the broker {has}: it is too old or too new for this",
            )
        plan = self._plans[request] = self._plan(request, version)
        return plan

    def _plan(self, request: type[Request], version: int) -> Plan:
        if version < self._lowest(request):
            name = request.__name__.removesuffix("Request")
            text = f"the broker has {name} from version {self._lowest(request)} only, version {version} is needed"
            raise UnsupportedByBroker(ErrorCode.UNSUPPORTED_VERSION, text)
        plan = self._lower_plans.get((request, version))
        if plan is None:
            plan = self._lower_plans[request, version] = Plan(request, version, self._client_id)
        return plan
