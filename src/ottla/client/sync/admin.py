"""The sync admin client."""

from ottla.client.admin.admin import AsyncAdmin
from ottla.client.sync.admin_life import AdminFace
from ottla.client.sync.loop_thread import blocking


class Admin(AdminFace):
    """Ask and change what a cluster has, of Ottla or of Apache Kafka.

        with Admin("localhost:9092") as admin:
            print(admin.describe_cluster().nodes)

    Every method is that of `AsyncAdmin`, and waits for its result.
    """

    KIND = AsyncAdmin

    # Topics

    create_topics = blocking(AsyncAdmin.create_topics)
    delete_topics = blocking(AsyncAdmin.delete_topics)
    list_topics = blocking(AsyncAdmin.list_topics)
    describe_topics = blocking(AsyncAdmin.describe_topics)

    # Partitions and their replicas

    create_partitions = blocking(AsyncAdmin.create_partitions)
    elect_leaders = blocking(AsyncAdmin.elect_leaders)
    list_reassignments = blocking(AsyncAdmin.list_reassignments)
    alter_reassignments = blocking(AsyncAdmin.alter_reassignments)

    # Settings

    describe_configs = blocking(AsyncAdmin.describe_configs)
    alter_configs = blocking(AsyncAdmin.alter_configs)
    list_config_resources = blocking(AsyncAdmin.list_config_resources)

    # Groups

    list_groups = blocking(AsyncAdmin.list_groups)
    describe_groups = blocking(AsyncAdmin.describe_groups)
    delete_groups = blocking(AsyncAdmin.delete_groups)
    remove_members = blocking(AsyncAdmin.remove_members)

    # Offsets of groups

    list_group_offsets = blocking(AsyncAdmin.list_group_offsets)
    alter_group_offsets = blocking(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = blocking(AsyncAdmin.delete_group_offsets)

    # Records

    list_offsets = blocking(AsyncAdmin.list_offsets)
    delete_records = blocking(AsyncAdmin.delete_records)

    # Log directories

    describe_log_dirs = blocking(AsyncAdmin.describe_log_dirs)
    alter_replica_log_dirs = blocking(AsyncAdmin.alter_replica_log_dirs)

    # The cluster

    describe_cluster = blocking(AsyncAdmin.describe_cluster)
    describe_features = blocking(AsyncAdmin.describe_features)
    update_features = blocking(AsyncAdmin.update_features)

    # Producers and transactions

    describe_producers = blocking(AsyncAdmin.describe_producers)
    list_transactions = blocking(AsyncAdmin.list_transactions)
    describe_transactions = blocking(AsyncAdmin.describe_transactions)
    end_transactions = blocking(AsyncAdmin.end_transactions)
    abort_transaction = blocking(AsyncAdmin.abort_transaction)
    fence_producers = blocking(AsyncAdmin.fence_producers)

    # Quotas

    describe_client_quotas = blocking(AsyncAdmin.describe_client_quotas)
    alter_client_quotas = blocking(AsyncAdmin.alter_client_quotas)

    # Users

    describe_user_scram_credentials = blocking(AsyncAdmin.describe_user_scram_credentials)
    alter_user_scram_credentials = blocking(AsyncAdmin.alter_user_scram_credentials)
