"""What clients do, as the inputs that the search against a broker begins with: each is one connection."""

import random

from tests.fuzz.generator import RequestMaker
from tests.fuzz.targets.broker_rig import COMPACTED, TOPICS

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.framing import encode_request
from ottla.protocol.message import Request
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.registry import request_class
from ottla.records import Codec, Record, build_batch

NOW_MS = 1_700_000_000_000
TOPIC = TOPICS[0]
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
BY_NAME = {ApiKey.PRODUCE: 12, ApiKey.FETCH: 12, ApiKey.DELETE_TOPICS: 5}


def connection(*requests: Request) -> bytes:
    """One after another, in the newest version that names topics."""
    return b"".join(
        encode_request(request, BY_NAME.get(request.API_KEY, request.MAX_VERSION), number, "seed")
        for number, request in enumerate(requests, 1)
    )


def batch(count: int = 2, codec: Codec = Codec.NONE, key: bytes | None = b"k", **header: int) -> bytes:
    records = [Record(number, NOW_MS + number, key, b"value", []) for number in range(count)]
    return build_batch(records, codec=codec, **header)  # type: ignore[arg-type]  # all of them take whole numbers


def later(seconds: int, value: bytes | None = b"value", codec: Codec = Codec.NONE) -> bytes:
    """A batch whose time is so far from the others' that it goes into a segment of its own."""
    return build_batch([Record(0, NOW_MS + 1000 * seconds, b"k", value, [])], codec=codec)


def produce(records: bytes | None, topic: str = TOPIC, acks: int = -1, partition: int = 0) -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])
    return ProduceRequest(acks=acks, timeout_ms=100, topic_data=[data])


def fetch(offset: int = 0, topic: str = TOPIC, session_id: int = 0, session_epoch: int = -1) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 16)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    return FetchRequest(max_wait_ms=10, min_bytes=1, session_id=session_id, session_epoch=session_epoch, topics=topics)


def alter(resource_type: int, name: str, **configs: str | None) -> IncrementalAlterConfigsRequest:
    changes = [
        AlterableConfig(name=key.replace("_", "."), config_operation=DELETE if value is None else SET, value=value)
        for key, value in configs.items()
    ]
    resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=changes)
    return IncrementalAlterConfigsRequest(resources=[resource])


def create(name: str, **configs: str) -> CreateTopicsRequest:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=settings)]
    )


def list_offsets(timestamp: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=partitions)])


def delete_records(offset: int) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=offset)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=partitions)], timeout_ms=100)


def _describe(resource_type: int, name: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None)
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)


def _forgetting(session_id: int) -> FetchRequest:
    request = fetch(session_id=session_id, session_epoch=2)
    request.topics = []
    request.forgotten_topics_data = [ForgottenTopic(topic=TOPIC, partitions=[0])]
    return request


def about_records() -> list[bytes]:
    """Producing, fetching, looking up, deleting."""
    epochs = [OffsetForLeaderPartition(partition=0, leader_epoch=0), OffsetForLeaderPartition(partition=1)]
    return [
        connection(ApiVersionsRequest(client_software_name="seed", client_software_version="1"), MetadataRequest()),
        connection(*(produce(batch(3, codec)) for codec in Codec), fetch(), fetch(4), fetch(99)),
        connection(produce(batch(), acks=0), produce(batch(), acks=1), produce(None), produce(batch(), "nobody")),
        connection(produce(b"not a batch", acks=0), fetch()),
        connection(fetch(0), *[produce(batch(), acks=0, partition=77)] * 3),
        connection(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
            produce(batch(base_sequence=0, producer_id=0, producer_epoch=0)),
            produce(batch(base_sequence=2, producer_id=0, producer_epoch=0)),
            produce(batch(base_sequence=2, producer_id=0, producer_epoch=0)),
            produce(batch(base_sequence=9, producer_id=0, producer_epoch=0)),
            DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0, 1])]),
        ),
        *(
            connection(
                produce(batch()),
                fetch(session_epoch=0),
                fetch(session_id=number, session_epoch=1),
                _forgetting(number),
            )
            for number in range(1, 4)
        ),
        connection(produce(batch(5)), *(list_offsets(time) for time in (-1, -2, -3, -4, -5, NOW_MS, NOW_MS + 9))),
        connection(produce(batch(5)), delete_records(3), fetch(0), fetch(3), delete_records(-1), delete_records(99)),
        connection(OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=epochs)])),
        connection(produce(batch(key=None), COMPACTED), *[produce(batch(), COMPACTED)] * 3, fetch(0, COMPACTED)),
        connection(
            produce(later(0), COMPACTED),
            produce(later(2, codec=Codec.LZ4), COMPACTED),
            produce(later(4, None), COMPACTED),
            produce(later(6), COMPACTED),
            fetch(0, COMPACTED),
        ),
        connection(
            alter(TOPIC_RESOURCE, TOPIC, retention_ms="1"),
            *(produce(later(seconds)) for seconds in (-9, -6, -3)),
            list_offsets(-2),
        ),
    ]


def about_topics() -> list[bytes]:
    """Creating, changing and deleting topics and settings."""
    return [
        connection(
            create("new", compression_type="zstd", message_timestamp_type="LogAppendTime"),
            produce(batch(codec=Codec.GZIP), "new"),
            fetch(0, "new"),
            DeleteTopicsRequest(topic_names=["new"], timeout_ms=100),
            fetch(0, "new"),
        ),
        connection(MetadataRequest(topics=[MetadataRequestTopic(name="made-by-asking")])),
        connection(
            CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=TOPIC, count=3, assignments=None)]),
            produce(batch(), partition=2),
        ),
        connection(
            alter(TOPIC_RESOURCE, TOPIC, retention_ms="1", segment_ms="1", cleanup_policy="compact,delete"),
            produce(batch()),
            produce(batch()),
            _describe(TOPIC_RESOURCE, TOPIC),
            alter(TOPIC_RESOURCE, TOPIC, retention_ms=None, cleanup_policy="none"),
        ),
        connection(alter(BROKER_RESOURCE, "", max_connections="1000"), _describe(BROKER_RESOURCE, "0")),
        connection(DeleteTopicsRequest(topic_names=list(TOPICS), timeout_ms=100), MetadataRequest()),
        connection(alter(TOPIC_RESOURCE, TOPIC, flush_messages="1"), produce(batch()), produce(batch()), fetch()),
    ]


def stories() -> list[bytes]:
    return [*about_records(), *about_topics()]


def every_api(served: list[ApiKey], topic_ids: dict[str, bytes]) -> list[bytes]:
    """A request of each API in its oldest and its newest version, filled at random; the same in every run."""
    maker = RequestMaker(random.Random(1), served, topic_ids)
    frames: list[bytes] = []
    for key in served:
        cls = request_class(key)
        assert cls is not None
        for version in (cls.MIN_VERSION, cls.MAX_VERSION):
            frames += (encode_request(maker.message(cls, version), version, 1, "seed"),)
    return frames


def deleted_by_id(topic_ids: dict[str, bytes]) -> bytes:
    state = DeleteTopicState(name=None, topic_id=topic_ids[TOPIC])
    return encode_request(DeleteTopicsRequest(topics=[state], timeout_ms=100), 6, 1, None)
