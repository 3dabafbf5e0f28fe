"""Quotas of users, client ids and addresses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Outcomes
from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results
from ottla.client.errors import InvalidRequest
from ottla.protocol.messages import alter_client_quotas as alter
from ottla.protocol.messages import describe_client_quotas as describe

USER, CLIENT_ID, IP = "user", "client-id", "ip"


class QuotaName(Enum):
    """`DEFAULT` is for all who have no quota of their own; `ANY` finds named ones and the default when describing."""

    DEFAULT = "default"
    ANY = "any"


DEFAULT = QuotaName.DEFAULT
ANY = QuotaName.ANY


class _MatchType(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Who a quota is for: a user, a client id, both together, or an address; a part that is None is not in it."""

    user: str | QuotaName | None = None
    client_id: str | QuotaName | None = None
    ip: str | QuotaName | None = None

    def parts(self) -> list[tuple[str, str | QuotaName]]:
        named = ((USER, self.user), (CLIENT_ID, self.client_id), (IP, self.ip))
        return [(kind, name) for kind, name in named if name is not None]

    def __str__(self) -> str:
        return ", ".join(
            f"{kind} {'(default)' if name is DEFAULT else name if isinstance(name, str) else '(any)'}"
            for kind, name in self.parts()
        )


class QuotasAdmin(AdminPart):
    async def describe_client_quotas(
        self, wanted: QuotaEntity | None = None, *, strict: bool = False, timeout: float | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas of all that match, by key (`producer_byte_rate`, `request_percentage` ...); all where nothing is
        named. With `strict`, only of those that have no other parts than the named ones."""
        call = self._call(timeout)
        components = [_component(kind, name) for kind, name in (wanted.parts() if wanted else ())]
        request = describe.DescribeClientQuotasRequest(components=components, strict=strict)

        async def ask() -> dict[QuotaEntity, dict[str, float]]:
            answer = await call.to_any(request, describe.DescribeClientQuotasResponse)
            if answer.error_code:
                raise failure(answer.error_code, answer.error_message, "the quotas")
            found = {
                _entity(entry.entity): {value.key: value.value for value in entry.values}
                for entry in answer.entries or ()
            }
            return {entity: found[entity] for entity in sorted(found, key=str)}

        return await call.ask_until_answered(ask)

    async def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[QuotaEntity, None]:
        """Set quotas, or remove those whose value is None; the others stay.

        await admin.alter_client_quotas({QuotaEntity(user="alice"): {"producer_byte_rate": 1_000_000}})
        """
        for entity in changes:
            if not entity.parts() or any(name is ANY for _, name in entity.parts()):
                raise InvalidRequest("a quota is changed for a named user, client id or address, or for DEFAULT")
        call = self._call(timeout)

        async def ask(entities: Sequence[QuotaEntity]) -> Outcomes[QuotaEntity, None]:
            request = alter.AlterClientQuotasRequest(
                entries=[
                    alter.EntryData(
                        entity=[
                            alter.EntityData(entity_type=kind, entity_name=name if isinstance(name, str) else None)
                            for kind, name in entity.parts()
                        ],
                        ops=[
                            alter.OpData(key=key, value=value or 0.0, remove=value is None)
                            for key, value in changes[entity].items()
                        ],
                    )
                    for entity in entities
                ],
                validate_only=validate_only,
            )
            answer = await call.to_controller(request, alter.AlterClientQuotasResponse)
            return {
                (entity := _entity(entry.entity)): failure(entry.error_code, entry.error_message, entity)
                if entry.error_code
                else None
                for entry in answer.entries
            }

        return await call.settle(changes, lambda entities: call.in_pieces(entities, ask))


def _component(kind: str, name: str | QuotaName) -> describe.ComponentData:
    if isinstance(name, str):
        return describe.ComponentData(entity_type=kind, match_type=_MatchType.EXACT, match=name)
    match = _MatchType.DEFAULT if name is DEFAULT else _MatchType.ANY
    return describe.ComponentData(entity_type=kind, match_type=match, match=None)


def _entity(parts: Sequence[describe.EntityData] | Sequence[alter.EntityData]) -> QuotaEntity:
    names = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in parts}
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID), names.get(IP))
