"""The admin client of those who read topics: which partitions there are, and which offsets.

It is a class of its own because to load all of `AsyncAdmin` takes longer than to ask: a process that is started to ask
these few things, as Spark starts one for every run of a streaming query, is waited for.
"""

from ottla.client.admin.group_offsets import GroupOffsetsAdmin
from ottla.client.admin.life import AdminLife
from ottla.client.admin.offsets import OffsetsAdmin
from ottla.client.admin.topics import TopicsAdmin


class AsyncReaderAdmin(TopicsAdmin, OffsetsAdmin, GroupOffsetsAdmin, AdminLife):
    """`AsyncAdmin` as far as topics, offsets and offsets of groups go."""
