"""Blocks of producer ids: each id is given out once in the life of a cluster.

A block belongs to whoever moved the counter past it. The counter is moved before any id of the block is used, so
a crash can waste ids and never repeat one.
"""

from typing import NamedTuple

from ottla.cluster import paths, registry
from ottla.coordination.store import BadVersion, ConnectionLost, Store
from ottla.protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1000
_MAX_PRODUCER_ID = (1 << 63) - 1
_ATTEMPTS = 100


class ProducerIdBlock(NamedTuple):
    first_id: int
    size: int


async def take_block(store: Store) -> ProducerIdBlock:
    """Claim the next block; other brokers may do so at the same time."""
    for _ in range(_ATTEMPTS):
        try:
            node = await store.get(paths.PRODUCER_IDS)
            first_id = registry.decode_counter(node, "next_id")
            if first_id > _MAX_PRODUCER_ID - BLOCK_SIZE:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been given out.")
            data = registry.encode_counter("next_id", first_id + BLOCK_SIZE)
            await store.set(paths.PRODUCER_IDS, data, node.version)
            return ProducerIdBlock(first_id, BLOCK_SIZE)
        except (BadVersion, ConnectionLost):
            continue
    message = f"No block of producer ids could be claimed in {_ATTEMPTS} attempts: others were always faster."
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
