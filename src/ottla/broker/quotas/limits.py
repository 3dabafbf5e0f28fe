"""Whose limit it is.

The nearest of these that is set counts, as in Kafka:

    1  this user with this client id        5  any user with any client id
    2  this user with any client id         6  any user
    3  this user                            7  this client id
    4  any user with this client id         8  any client id

Where the quota of a user counts, all client ids of that user share it; otherwise each client id has it for itself.
"""

from collections.abc import Iterable

ANY = None
"""In place of a name: the default."""

ClientTags = tuple[str, str]
"""User and client id of those who share a limit; an empty one plays no part."""


class ClientLimits:
    """The limits of users and client ids in one respect."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str | None, str | None], float] = {}
        self._users: dict[str | None, float] = {}
        self._clients: dict[str | None, float] = {}

    def replace(
        self,
        pairs: Iterable[tuple[str | None, str | None, float]],
        users: Iterable[tuple[str | None, float]],
        clients: Iterable[tuple[str | None, float]],
    ) -> None:
        self._pairs = {(user, client_id): limit for user, client_id, limit in pairs}
        self._users = dict(users)
        self._clients = dict(clients)

    def __bool__(self) -> bool:
        return bool(self._pairs or self._users or self._clients)

    def tags(self, user: str, client_id: str) -> ClientTags:
        """Who shares the limit that counts for this client.

        Where there is one sort of quotas only, its tags are everybody's, limited or not.
        """
        pairs, users = self._pairs, self._users
        if not pairs and not users:
            return "", client_id
        if not self._clients and not pairs:
            return user, ""
        if not self._clients and not users:
            return user, client_id
        if (user, client_id) in pairs or (user, ANY) in pairs:
            return user, client_id
        if user in users:
            return user, ""
        if (ANY, client_id) in pairs or (ANY, ANY) in pairs:
            return user, client_id
        if ANY in users:
            return user, ""
        return "", client_id

    def of(self, tags: ClientTags) -> float | None:
        """The limit of those with these tags; None where there is none."""
        user, client_id = tags
        if user and client_id:
            pairs = self._pairs
            for key in ((user, client_id), (user, ANY), (ANY, client_id), (ANY, ANY)):
                if key in pairs:
                    return pairs[key]
            return None
        if user:
            return self._users.get(user, self._users.get(ANY))
        if client_id:
            return self._clients.get(client_id, self._clients.get(ANY))
        return None
