"""Users that log in with SCRAM. A password never leaves this process: it is salted and hashed here."""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ottla.client.admin.base import AdminPart
from ottla.client.admin.call import Outcomes
from ottla.client.admin.failures import failure
from ottla.client.admin.results import Results
from ottla.client.errors import InvalidRequest
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from ottla.runtime import IdSource

DEFAULT_ITERATIONS = 8192


class ScramMechanism(IntEnum):
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        return "sha256" if self == ScramMechanism.SCRAM_SHA_256 else "sha512"


@dataclass(frozen=True, slots=True)
class ScramCredential:
    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramUpsert:
    """A user's new password, for one mechanism. Without a `salt` a fresh one is drawn, which is what you want."""

    user: str
    password: str = field(repr=False)
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512
    iterations: int = DEFAULT_ITERATIONS
    salt: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.user or not self.password:
            raise InvalidRequest("a user has a name and a password that are not empty")


@dataclass(frozen=True, slots=True)
class ScramDelete:
    user: str
    mechanism: ScramMechanism


class ScramAdmin(AdminPart):
    _ids: IdSource

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> Results[str, tuple[ScramCredential, ...]]:
        """The mechanisms that each user has a password for, of all users where none are named."""
        call = self._call(timeout)
        wanted = None if users is None else list(users)

        async def ask() -> Results[str, tuple[ScramCredential, ...]]:
            names = None if wanted is None else [UserName(name=name) for name in wanted]
            request = DescribeUserScramCredentialsRequest(users=names)
            answer = await call.to_controller(request, DescribeUserScramCredentialsResponse)
            if answer.error_code:
                raise failure(answer.error_code, answer.error_message, "the users")
            return Results(
                {
                    one.user: failure(one.error_code, one.error_message, f"user {one.user}")
                    if one.error_code
                    else tuple(
                        ScramCredential(ScramMechanism(info.mechanism), info.iterations)
                        for info in sorted(one.credential_infos, key=lambda info: info.mechanism)
                        if info.mechanism in set(ScramMechanism)
                    )
                    for one in sorted(answer.results, key=lambda one: one.user)
                }
            )

        return await call.ask_until_answered(ask)

    async def alter_user_scram_credentials(
        self, changes: Iterable[ScramUpsert | ScramDelete], *, timeout: float | None = None
    ) -> Results[str, None]:
        """Set or delete passwords; the results are by user.

        await admin.alter_user_scram_credentials([ScramUpsert("alice", "secret")])
        """
        call = self._call(timeout)
        given = list(changes)
        upserts = [await self._salted(one) for one in given if isinstance(one, ScramUpsert)]
        deletions = [
            ScramCredentialDeletion(name=one.user, mechanism=one.mechanism)
            for one in given
            if isinstance(one, ScramDelete)
        ]

        async def attempt(users: Sequence[str]) -> Outcomes[str, None]:
            request = AlterUserScramCredentialsRequest(
                deletions=[one for one in deletions if one.name in users],
                upsertions=[one for one in upserts if one.name in users],
            )
            answer = await call.to_controller(request, AlterUserScramCredentialsResponse)
            return {
                one.user: failure(one.error_code, one.error_message, f"user {one.user}") if one.error_code else None
                for one in answer.results
            }

        return await call.settle([one.user for one in given], attempt)

    async def _salted(self, change: ScramUpsert) -> ScramCredentialUpsertion:
        salt = self._ids.uuid() + self._ids.uuid() if change.salt is None else change.salt
        # Thousands of rounds take milliseconds, without the interpreter's lock: other work of the loop goes on.
        salted = await asyncio.to_thread(
            hashlib.pbkdf2_hmac, change.mechanism.hash_name, change.password.encode(), salt, change.iterations
        )
        return ScramCredentialUpsertion(
            name=change.user,
            mechanism=change.mechanism,
            iterations=change.iterations,
            salt=salt,
            salted_password=salted,
        )
