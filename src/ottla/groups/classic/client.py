"""Who sends a request to a group."""

from typing import NamedTuple


class Client(NamedTuple):
    """As Kafka keeps it of members: `host` is the address behind a slash. A client without an id has an empty one."""

    client_id: str
    host: str
    api_version: int
