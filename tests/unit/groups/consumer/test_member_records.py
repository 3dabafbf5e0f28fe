"""The bytes of a member's records, as Kafka 4.3 wrote them."""

from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.membership import current_entry, metadata_entry
from ottla.groups.entries import GROUP_RECORD_TYPES, ClassicMemberMetadata, ClassicProtocol
from ottla.ledger.entries import Entry

KEY = b"\x00\x05\x00\x01g\x00\x02m1"
NEW_PROTOCOL = b"\x00\x00\x00\x00\x0cwire-client\x0b/127.0.0.1\x02\x05four\x01\x00\x00\xea`\x00\x01\x00\x01\x00"
MEMBER = ConsumerMember(
    "m1",
    rebalance_timeout_ms=60_000,
    client_id="wire-client",
    client_host="/127.0.0.1",
    topic_names=frozenset({"four"}),
)


def read(entry: Entry) -> Entry:
    return GROUP_RECORD_TYPES.decode(*entry.encode())


def test_a_member_of_the_new_protocol_says_that_it_has_no_classic_one() -> None:
    entry = metadata_entry("g", MEMBER)
    assert entry.encode() == (KEY, NEW_PROTOCOL)
    assert read(entry) == entry


def test_without_a_word_about_it_a_member_is_a_classic_one_as_to_kafka() -> None:
    silent = NEW_PROTOCOL[:-4] + b"\x00"
    value = GROUP_RECORD_TYPES.decode(KEY, silent).value
    assert getattr(value, "classic_member_metadata", None) == ClassicMemberMetadata()


def test_a_classic_member_comes_back_with_its_protocols() -> None:
    protocols = [ClassicProtocol(name="range", metadata=b"\x00\x03data")]
    classic = ClassicMemberMetadata(session_timeout_ms=45_000, supported_protocols=protocols)
    entry = metadata_entry("g", ConsumerMember("m1", classic=classic))
    assert read(entry) == entry


def test_partitions_come_back_with_the_epochs_in_which_they_were_given() -> None:
    topic_id = bytes(range(16))
    member = ConsumerMember("m1", 7, 6, assigned={topic_id: {3: 7, 1: 5}}, pending_revocation={topic_id: {0: 2}})
    value = read(current_entry("g", member)).value
    assert value is not None
    assert ConsumerMember("m1").with_current(value) == member  # type: ignore[arg-type]  # of this very type
