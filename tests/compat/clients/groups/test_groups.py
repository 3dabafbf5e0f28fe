"""Groups of every client library, in the protocols that it speaks."""

from __future__ import annotations

from tests.compat.clients.groups.contract import GroupContract
from tests.compat.clients.groups.hosts import (
    AIOKAFKA,
    CONFLUENT,
    CONFLUENT_NEW,
    JAVA_39,
    JAVA_43,
    JAVA_43_NEW,
    KAFKA_PYTHON,
)


class TestConfluent(GroupContract):
    kind = CONFLUENT


class TestConfluentNew(GroupContract):
    kind = CONFLUENT_NEW


class TestAiokafka(GroupContract):
    kind = AIOKAFKA
    # The library takes a fenced member for one that has to join again, and does so for ever.
    hears_of_a_double = False


class TestKafkaPython(GroupContract):
    kind = KAFKA_PYTHON


class TestJava39(GroupContract):
    kind = JAVA_39


class TestJava43(GroupContract):
    kind = JAVA_43


class TestJava43New(GroupContract):
    kind = JAVA_43_NEW
