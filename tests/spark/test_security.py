"""TLS and SASL as options of the source and the sink, on an Apache Kafka that lets nobody else in."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.peers.certificates import in_pkcs12
from tests.peers.secured_kafka import PASSWORD, USER, SecuredKafka

from ottla import Admin

pytestmark = pytest.mark.timeout(180)

_STORE_PASSWORD = "store secret"
_ROWS = 50


@pytest.fixture(scope="module")
def kafka(secured_kafka: SecuredKafka) -> SecuredKafka:
    with Admin(secured_kafka.address("PLAINTEXT")) as admin:
        admin.create_topics(["written", "copied"]).raise_for_errors()
    return secured_kafka


def jaas(module: str, password: str) -> str:
    return f'org.apache.kafka.common.security.{module} required username="{USER}" password="{password}";'


def scram_over_tls(kafka: SecuredKafka, password: str = PASSWORD) -> dict[str, str]:
    """As a user of Java's client writes it; trust is in PEM."""
    return {
        "kafka.bootstrap.servers": kafka.address("SASL_SSL"),
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": jaas("scram.ScramLoginModule", password),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(kafka.authority.certificate),
    }


def plain_sasl(kafka: SecuredKafka) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.address("SASL_PLAINTEXT"),
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": jaas("plain.PlainLoginModule", PASSWORD),
    }


def certificate(kafka: SecuredKafka, trust: Path, trust_type: str) -> dict[str, str]:
    """TLS with a certificate of one's own, in a PKCS12 store."""
    return {
        "kafka.bootstrap.servers": kafka.address("SSL"),
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": str(in_pkcs12(kafka.authority.issue("job"), _STORE_PASSWORD)),
        "kafka.ssl.keystore.password": _STORE_PASSWORD,
        "kafka.ssl.truststore.type": trust_type,
        "kafka.ssl.truststore.location": str(trust),
        "kafka.ssl.truststore.password": _STORE_PASSWORD,
    }


def rows_of(spark: Any, name: str, options: dict[str, str], topic: str) -> list[Any]:
    frame = spark.read.format(name).options(**options).option("subscribe", topic).load()
    return sorted(frame.collect(), key=lambda row: row.offset)


def test_a_secured_kafka_is_written_and_read(spark: Any, kafka: SecuredKafka, tmp_path: Path) -> None:
    """Each way of proving oneself once; Spark's connector reads the same rows with the very same options."""
    frame = spark.range(0, _ROWS, 1, 1).selectExpr("cast(id AS string) AS value")
    careful = {**scram_over_tls(kafka), "topic": "written", "deliveryGuarantee": "exactly-once"}
    frame.write.format("ottla").mode("append").options(**careful).save()

    java_store = java_trust_store(kafka, tmp_path)
    with pytest.raises(PySparkException, match=r"is a Java key store \(JKS\), which only Java reads") as refusal:
        rows_of(spark, "ottla", certificate(kafka, java_store, "JKS"), "written")
    converted = convert(str(refusal.value))

    with_certificate = certificate(kafka, converted, "PKCS12")
    rows = rows_of(spark, "ottla", with_certificate, "written")
    assert [row.value for row in rows] == [b"%d" % number for number in range(_ROWS)]
    assert rows == rows_of(spark, "kafka", with_certificate, "written")

    group = {"subscribe": "written", "startingOffsets": "earliest", "offsetsGroup": "copier"}
    stream = spark.readStream.format("ottla").options(**plain_sasl(kafka), **group).load()
    sink = {**plain_sasl(kafka), "topic": "copied", "checkpointLocation": str(tmp_path / "checkpoint")}
    query = stream.select("value").writeStream.format("ottla").options(**sink).trigger(availableNow=True).start()
    query.awaitTermination(120)
    with Admin(kafka.address("PLAINTEXT")) as admin:
        assert [found.offset for found in admin.list_offsets([("copied", 0)]).values() if found] == [_ROWS]
        assert [found.offset for found in admin.list_group_offsets("copier")["copier"].values() if found] == [_ROWS + 1]


def test_who_is_not_let_in_is_told_why(spark: Any, kafka: SecuredKafka) -> None:
    wrong = scram_over_tls(kafka, "not this")
    frame = spark.range(1).selectExpr("'x' AS value")
    for attempt in (
        lambda: rows_of(spark, "ottla", wrong, "written"),
        lambda: frame.write.format("ottla").mode("append").options(**wrong).option("topic", "written").save(),
    ):
        with pytest.raises(PySparkException, match=r"refused user 'alice'.*check the credentials") as refusal:
            attempt()
        assert "not this" not in str(refusal.value)
        assert "Traceback" not in str(refusal.value)


def java_trust_store(kafka: SecuredKafka, directory: Path) -> Path:
    store = directory / "trust.jks"
    command = ["keytool", "-importcert", "-noprompt", "-alias", "authority", "-file", str(kafka.authority.certificate)]
    command += ["-keystore", str(store), "-storetype", "JKS", "-storepass", _STORE_PASSWORD]
    subprocess.run(command, check=True, capture_output=True)
    return store


def convert(refusal: str) -> Path:
    """Run the command that the refusal tells; it asks for passwords unless it is given them."""
    found = re.search(r"`(keytool .*?)`, then set kafka\.ssl\.truststore\.location to (\S+) ", refusal)
    assert found is not None, refusal
    passwords = ["-srcstorepass", _STORE_PASSWORD, "-deststorepass", _STORE_PASSWORD]
    subprocess.run([*shlex.split(found[1]), *passwords], check=True, capture_output=True)
    return Path(found[2])
