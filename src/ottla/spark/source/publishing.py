"""Offsets of a query as those of a consumer group, so that every tool that knows groups shows the query's lag.

Spark's own record of a query is its checkpoint; nothing here is ever read back. What is published is what Spark has
said to be done. It says so by `commit`, which does not come for the last batch of a run, and by asking for the offsets
that follow a batch, which does: a run with `availableNow` ends only after that question.

The group has no members, so a group that consumers are in refuses the offsets. A query that only carries a
`kafka.group.id`, as jobs written for Spark's connector may, is never failed by that; one that asked for `offsetsGroup`
is, at its first attempt.
"""

import logging
import threading
from collections.abc import Mapping
from typing import Final

from ottla.client.errors import BrokerError, OttlaError
from ottla.client.sync.reader_admin import ReaderAdmin
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.spark.source.failures import OptionError
from ottla.spark.source.limits import Offsets

_LOG = logging.getLogger(__name__)
PATIENCE_SECONDS: Final = 10.0


class Publisher:
    def __init__(self, group: str, *, is_asked_for: bool) -> None:
        self._group = group
        self._is_asked_for = is_asked_for
        self._published: Offsets = {}
        self._is_proven = False
        self._beside: threading.Thread | None = None

    def publish(self, admin: ReaderAdmin, offsets: Mapping[TopicPartition, int], *, waits: bool) -> None:
        """Those that moved. Without `waits` it is done beside the query, which then need not wait for the broker; the
        first time is always waited for, since that is where a group refuses."""
        moved = {one: offset for one, offset in offsets.items() if self._published.get(one) != offset}
        if not moved:
            return
        if self._beside is not None:
            self._beside.join()
            self._beside = None
        self._published.update(moved)
        if waits or not self._is_proven:
            self._send(admin, moved)
            return
        self._beside = threading.Thread(target=self._send, args=(admin, moved), name="ottla-publisher", daemon=True)
        self._beside.start()

    def _send(self, admin: ReaderAdmin, moved: Offsets) -> None:
        try:
            offsets: dict[tuple[str, int], int | OffsetAndMetadata] = dict(moved.items())
            admin.alter_group_offsets(self._group, offsets, timeout=PATIENCE_SECONDS).raise_for_errors()
            self._is_proven = True
        except OttlaError as error:
            for partition in moved:
                self._published.pop(partition, None)
            if self._is_asked_for and not self._is_proven and isinstance(error, BrokerError):
                raise OptionError(
                    f"option offsetsGroup is {self._group!r}, and that group does not take the offsets: {error}"
                ) from None
            _LOG.warning("offsets were not published to the group %s: %s", self._group, error)

    def close(self) -> None:
        if self._beside is not None:
            self._beside.join(PATIENCE_SECONDS)
