"""Passwords are hashed as SCRAM wants it, and what members of groups keep in bytes is read, or left alone."""

import asyncio
import base64
import hashlib
import hmac

import pytest

from ottla.client.admin import AsyncAdmin, ScramMechanism, ScramUpsert
from ottla.client.admin.group_members import described_classic, read_assignment
from ottla.client.types import TopicPartition
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ottla.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from ottla.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember

# The exchange of RFC 7677, section 3: user "user" with password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
AUTH_MESSAGE = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)
SERVER_SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_password_is_salted_as_the_standard_does_it() -> None:
    async def salted() -> bytes:
        admin = AsyncAdmin("localhost:9092")
        change = ScramUpsert("user", "pencil", ScramMechanism.SCRAM_SHA_256, 4096, SALT)
        return (await admin._salted(change)).salted_password

    server_key = hmac.digest(asyncio.run(salted()), b"Server Key", hashlib.sha256)
    assert hmac.digest(server_key, AUTH_MESSAGE, hashlib.sha256) == SERVER_SIGNATURE


def test_every_password_gets_a_salt_of_its_own_and_is_never_shown() -> None:
    async def salts() -> set[bytes]:
        admin = AsyncAdmin("localhost:9092")
        change = ScramUpsert("user", "pencil", iterations=4096)
        return {(await admin._salted(change)).salt for _ in range(3)}

    assert len(asyncio.run(salts())) == 3
    assert "pencil" not in repr(ScramUpsert("user", "pencil"))


@pytest.mark.parametrize("version", [b"\x00\x00", b"\x00\x03", b"\x00\x09"])
def test_an_assignment_is_read_in_every_version(version: bytes) -> None:
    assigned = [Assigned(topic="orders", partitions=[1, 0])]
    data = version + ConsumerProtocolAssignment(assigned_partitions=assigned).encode(0)
    assert read_assignment(data) == (TopicPartition("orders", 0), TopicPartition("orders", 1))


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x00", b"\xff\xff\x00", b"\x00\x00\x7f\xff\xff\xff", b"tea for two"]
)
def test_bytes_that_are_no_assignment_are_none(data: bytes) -> None:
    assert read_assignment(data) == ()


def test_members_of_groups_that_are_no_consumers_keep_their_bytes_to_themselves() -> None:
    member = DescribedGroupMember(member_id="m", member_assignment=b"\x00\x00", member_metadata=b"\x00")
    group = described_classic(DescribedGroup(group_id="g", protocol_type="connect", members=[member]), 1)
    assert group.members[0].assignment == ()
    assert group.is_active
    assert group.owner_of(("orders", 0)) is None
