"""What all groups of a broker are handed, and what they count together."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.cluster.image import ClusterImage
from ottla.groups.configs import settings_of
from ottla.groups.settings import GroupSettings
from ottla.runtime import Clock, IdSource


@dataclass(slots=True)
class GroupCounts:
    """What happened since the broker started; partitions that come and go change nothing of it."""

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    completed_rebalances: int = 0
    consumer_rebalances: int = 0


@dataclass(frozen=True, slots=True)
class GroupContext:
    clock: Clock
    ids: IdSource
    settings: Callable[[], GroupSettings]
    image: Callable[[], ClusterImage]
    counts: GroupCounts = field(default_factory=GroupCounts)

    def settings_of(self, group_id: str) -> GroupSettings:
        """The settings that one group goes by: its own, and the broker's where it has none."""
        return settings_of(self.settings(), self.image().group_configs.by_name.get(group_id, {}))
