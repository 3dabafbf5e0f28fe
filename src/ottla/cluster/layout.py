"""The nodes that every cluster has, made when the first broker starts."""

from ottla.cluster import paths, registry
from ottla.coordination.store import ConnectionLost, Create, NodeExists, Store
from ottla.protocol.uuids import uuid_to_text
from ottla.runtime import IdSource

_ATTEMPTS = 10


async def ensure_layout(store: Store, ids: IdSource, cluster_id: str | None = None) -> str:
    """Create what is missing and return the cluster's id. Safe for brokers that start at the same time.

    A new cluster takes the `cluster_id` that the broker's directory has already, or a new one.
    """
    wanted = [
        Create(paths.BROKERS),
        Create(paths.BROKER_IDS),
        Create(paths.ADMITTED_BROKERS, registry.encode_admitted({})),
        Create(paths.BROKER_DIRECTORIES),
        Create(paths.CONTROLLER_EPOCH, registry.encode_counter("epoch", 0)),
        Create(paths.TOPICS),
        Create(paths.CONFIGS),
        Create(paths.TOPIC_CONFIGS),
        Create(paths.BROKER_CONFIGS),
        Create(paths.GROUP_CONFIGS),
        Create(paths.CLIENT_METRICS),
        Create(paths.QUOTAS),
        Create(paths.PRODUCER_IDS, registry.encode_counter("next_id", 0)),
        Create(paths.CLUSTER_ID, registry.encode_cluster_id(cluster_id or uuid_to_text(ids.uuid()))),
    ]
    for _ in range(_ATTEMPTS):
        found = await store.get_many([create.path for create in wanted])
        missing = [create for create, node in zip(wanted, found, strict=True) if node is None]
        if not missing:
            break
        try:
            await store.transact(missing)
        except (NodeExists, ConnectionLost):
            continue
    return registry.decode_cluster_id(await store.get(paths.CLUSTER_ID))
