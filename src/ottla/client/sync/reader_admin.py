"""The sync admin client of those who read topics."""

from ottla.client.admin.reader import AsyncReaderAdmin
from ottla.client.sync.admin_life import AdminFace
from ottla.client.sync.loop_thread import blocking


class ReaderAdmin(AdminFace):
    """`Admin` as far as a reader of topics needs it; loaded in a fraction of the time."""

    KIND = AsyncReaderAdmin

    list_topics = blocking(AsyncReaderAdmin.list_topics)
    describe_topics = blocking(AsyncReaderAdmin.describe_topics)
    list_offsets = blocking(AsyncReaderAdmin.list_offsets)
    alter_group_offsets = blocking(AsyncReaderAdmin.alter_group_offsets)
