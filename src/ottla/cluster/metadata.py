"""What this broker knows of the cluster, kept fresh by watches.

    event of a path -> the path is noted -> one task reads what was noted -> next image -> listeners (old, new)

Reading follows the events, so an image is at most as old as the reads under way. Whoever wrote and wants to see it
calls `refresh` with the paths written: a session sees its own writes. Only one read is under way at a time, so a
piece that was read earlier never replaces one that was read later.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from ottla.cluster import paths
from ottla.cluster.image import ClusterImage
from ottla.cluster.image_builder import ImageBuilder
from ottla.coordination.store import Event, EventKind, Node, Store, StoreError, Watch

logger = logging.getLogger(__name__)

ImageListener = Callable[[ClusterImage, ClusterImage], None]

_WATCHED = (
    paths.CLUSTER_ID,
    paths.BROKERS,
    paths.CONTROLLER,
    paths.CONTROLLER_EPOCH,
    paths.TOPICS,
    paths.CONFIGS,
    paths.QUOTAS,
)
_LOAD_ATTEMPTS = 10
_RETRY_SECONDS = 0.2


class MetadataClosed(Exception):
    """No further image will come."""


class MetadataCache:
    """Holds the newest image. `start` loads all of it; from then on it follows the store until `close`.

    Listeners are called on the loop, one image after the other, with the image before and the new one. They must
    be quick; one that raises does not keep the others from hearing.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._builder = ImageBuilder()
        self._watches: list[Watch] = []
        self._listeners: dict[object, ImageListener] = {}
        self._waiting: dict[asyncio.Future[ClusterImage], Callable[[ClusterImage], bool]] = {}
        self._noted: dict[str, None] = {}
        self._must_reload = False
        self._work = asyncio.Event()
        self._reading = asyncio.Lock()
        self._follower: asyncio.Task[None] | None = None

    @property
    def image(self) -> ClusterImage:
        return self._builder.image

    async def start(self) -> None:
        """Load the image and begin to follow. Raises `CorruptNode` for a store that cannot be understood."""
        self._watches = [self._store.watch(path, self._note) for path in _WATCHED]
        await self.reload()
        for problem in self._builder.problems.values():
            await self.close()
            raise problem
        self._follower = asyncio.create_task(self._follow(), name="metadata")

    async def close(self) -> None:
        for watch in self._watches:
            watch.close()
        self._watches = []
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
            self._follower = None
        for future in self._waiting:
            if not future.done():
                future.set_exception(MetadataClosed("the metadata cache was closed while someone waited for an image"))
        self._waiting.clear()

    def subscribe(self, listener: ImageListener) -> Callable[[], None]:
        """Call the listener with every new image from now on; the function returned ends that."""
        key = object()
        self._listeners[key] = listener
        return lambda: _forget(self._listeners, key)

    async def wait_for(self, condition: Callable[[ClusterImage], bool] | int) -> ClusterImage:
        """The first image that fulfils the condition, or has this version or a later one; the current one counts."""
        is_fulfilled = condition if callable(condition) else _reached(condition)
        if is_fulfilled(self.image):
            return self.image
        future: asyncio.Future[ClusterImage] = asyncio.get_running_loop().create_future()
        self._waiting[future] = is_fulfilled
        try:
            return await future
        finally:
            self._waiting.pop(future, None)

    async def refresh(self, changed_paths: Sequence[str]) -> ClusterImage:
        """Read these nodes now, whatever the watches have said, and return the image that has them."""
        async with self._reading:
            nodes = await self._store.get_many(changed_paths)
            self._apply(list(zip(changed_paths, nodes, strict=True)))
        return self.image

    async def reload(self) -> ClusterImage:
        """Read everything again. What is the same as before stays the same objects."""
        async with self._reading:
            for _ in range(_LOAD_ATTEMPTS):
                found: dict[str, Node | None] = dict.fromkeys(self._builder.known_paths())
                for path in _WATCHED:
                    for node in await self._store.read_tree(path):
                        found[node.path] = node
                self._apply(list(found.items()))
                if not self._builder.incomplete_topics():
                    break
        return self.image

    def _note(self, event: Event) -> None:
        if event.kind is EventKind.RESYNC:
            self._must_reload = True
        else:
            self._noted[event.path] = None
        self._work.set()

    async def _follow(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            must_reload, self._must_reload = self._must_reload, False
            noted, self._noted = self._noted, {}
            try:
                if must_reload:
                    await self.reload()
                elif noted:
                    await self.refresh(list(noted))
            except StoreError as error:
                # A new session sends RESYNC; until then, and after any other failure, the old image stands.
                logger.warning("the cluster's metadata could not be read and will be read again: %s", error)
                self._must_reload = True
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._work.set)

    def _apply(self, nodes: Sequence[tuple[str, Node | None]]) -> None:
        old = self._builder.image
        new = self._builder.apply(nodes)
        for path, _ in nodes:
            problem = self._builder.problems.get(path)
            if problem is not None:
                logger.error("ignored a node that cannot be understood: %s", problem)
        if new is old:
            return
        for listener in tuple(self._listeners.values()):
            try:
                listener(old, new)
            except Exception as error:
                context = {"message": "a listener of cluster images failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
        for future, is_fulfilled in tuple(self._waiting.items()):
            if not future.done() and is_fulfilled(new):
                future.set_result(new)


def _forget(listeners: dict[object, ImageListener], key: object) -> None:
    listeners.pop(key, None)


def _reached(version: int) -> Callable[[ClusterImage], bool]:
    return lambda image: image.version >= version
