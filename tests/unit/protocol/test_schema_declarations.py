"""What a declared class can do, before any byte is involved."""

import pytest

from ottla.protocol.messages.fetch import FetchRequest, ForgottenTopic, LeaderIdAndEpoch, PartitionData
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest
from ottla.protocol.schema import Int32, Struct, Versions, field


def test_arguments_left_out_take_kafkas_defaults() -> None:
    request = FetchRequest()
    assert request.max_bytes == 0x7FFFFFFF
    assert request.replica_id == request.session_epoch == -1
    assert request.cluster_id is None
    assert request.rack_id == ""
    assert request.topics == []
    assert PartitionData().records is None
    assert ForgottenTopic().topic_id == bytes(16)


def test_lists_and_structs_are_fresh() -> None:
    first, second = FetchRequest(), FetchRequest()
    first.topics.append(None)  # type: ignore[arg-type]  # anything will do to see whose list it is
    assert second.topics == []
    partition = PartitionData()
    partition.current_leader.leader_id = 7
    assert PartitionData().current_leader == LeaderIdAndEpoch()


def test_equality_is_by_class_and_fields() -> None:
    assert PartitionProduceData(index=1, records=b"x") == PartitionProduceData(index=1, records=memoryview(b"x"))
    assert PartitionProduceData(index=1) != PartitionProduceData(index=2)
    assert ForgottenTopic() != LeaderIdAndEpoch()
    with pytest.raises(TypeError, match="unhashable"):
        hash(ForgottenTopic())


def test_text_shows_fields_but_no_record_data() -> None:
    partition = PartitionProduceData(index=3, records=memoryview(bytes(300)))
    assert repr(partition) == "PartitionProduceData(index=3, records=<300 bytes>)"
    assert repr(ProduceRequest(acks=-1)).startswith("ProduceRequest(transactional_id=None, acks=-1, timeout_ms=0,")


def test_only_declared_fields_exist() -> None:
    with pytest.raises(TypeError, match="partitions_"):
        ForgottenTopic(partitions_=[])  # type: ignore[call-arg]  # this is what is refused
    with pytest.raises(TypeError, match="positional"):
        ForgottenTopic("topic")  # type: ignore[call-arg]  # this is what is refused
    topic = ForgottenTopic()
    with pytest.raises(AttributeError):
        topic.name = "x"  # type: ignore[attr-defined]  # this is what is refused


def test_slots_keep_the_order_of_the_wire() -> None:
    assert [one.name for one in PartitionProduceData.FIELDS] == ["index", "records"]
    assert not hasattr(PartitionProduceData(), "__dict__")


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3+", [3, 4, 1000], [0, 2]), ("0-14", [0, 14], [15]), ("5", [5], [4, 6])],
)
def test_versions_notation(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_a_type_the_protocol_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="array of arrays"):

        class Nested(Struct):
            rows: list[list[Int32]] = field("0+")

    with pytest.raises(TypeError, match="complex"):

        class Strange(Struct):
            number: complex = field("0+")
