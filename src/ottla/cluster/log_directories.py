"""The log directories that a broker has had, by their ids (Kafka's `directory.id` in `meta.properties`).

A partition that a broker should hold and does not find may be new, or it may be in a directory that is not here: a
disk that is not mounted looks like an empty one. So the store keeps the ids of all directories in which a broker may
have made partitions. One that is missing at a start is forgotten only when nothing else is missing.
"""

from collections.abc import Set as AbstractSet

from ottla.cluster import paths, registry
from ottla.coordination.store import NoNode, Store


async def known_directories(store: Store, node_id: int) -> frozenset[bytes]:
    try:
        return registry.decode_directories(await store.get(paths.broker_directories(node_id)))
    except NoNode:
        return frozenset()


async def remember_directories(store: Store, node_id: int, directory_ids: AbstractSet[bytes]) -> None:
    """Replace what is known. Only the broker itself writes its node."""
    data = registry.encode_directories(directory_ids)
    path = paths.broker_directories(node_id)
    try:
        await store.set(path, data)
    except NoNode:
        await store.create(path, data)
