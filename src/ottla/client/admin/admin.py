"""The admin client: everything that is asked or changed about a cluster."""

from ottla.client.admin.cluster import ClusterAdmin
from ottla.client.admin.configs import ConfigsAdmin
from ottla.client.admin.group_offsets import GroupOffsetsAdmin
from ottla.client.admin.groups import GroupsAdmin
from ottla.client.admin.life import AdminLife
from ottla.client.admin.log_dirs import LogDirsAdmin
from ottla.client.admin.offsets import OffsetsAdmin
from ottla.client.admin.partitions import PartitionsAdmin
from ottla.client.admin.producers import ProducersAdmin
from ottla.client.admin.quotas import QuotasAdmin
from ottla.client.admin.scram import ScramAdmin
from ottla.client.admin.topics import TopicsAdmin


class AsyncAdmin(
    TopicsAdmin,
    PartitionsAdmin,
    ConfigsAdmin,
    GroupsAdmin,
    GroupOffsetsAdmin,
    OffsetsAdmin,
    LogDirsAdmin,
    ClusterAdmin,
    ProducersAdmin,
    QuotasAdmin,
    ScramAdmin,
    AdminLife,
):
    """Ask and change what a cluster has, of Ottla or of Apache Kafka.

        import asyncio
        from ottla import AsyncAdmin
        from ottla.client.admin import NewTopic

        async def main():
            async with AsyncAdmin("localhost:9092") as admin:
                results = await admin.create_topics([NewTopic("orders", partitions=3)])
                results.raise_for_errors()
                for topic in await admin.list_topics():
                    print(topic.name, topic.partitions)

        asyncio.run(main())

    Calls about many things give `Results`: one value or error for each. The right broker is asked for each of them, and
    asked again when it turns out not to be the right one any more, for `timeout` seconds (`default.api.timeout.ms`
    where none are given). A change whose answer was lost may be sent twice; the second one then meets what the first
    did, such as TOPIC_ALREADY_EXISTS.

    Settings are Kafka's, as keywords or under their dotted names in `config`. Not safe to call from other threads than
    the loop's.
    """
