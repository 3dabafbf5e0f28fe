"""Settings of clients reach all that a pipeline does: on an Apache Kafka that lets nobody else in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.peers.secured_kafka import PASSWORD, USER, SecuredKafka
from tests.pipelines.cases import case
from tests.pipelines.driving import Run, send_all, some_events
from typer.testing import CliRunner

from ottla.cli.main import app
from ottla.pipelines.frame import job
from ottla.pipelines.frame.place import Place
from ottla.pipelines.frame.running import prepare_topics


@pytest.mark.timeout(180)
def test_a_secured_kafka_is_read_and_written(secured_kafka: SecuredKafka, pipeline_spark: Any, tmp_path: Path) -> None:
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(secured_kafka.authority.certificate),
    }
    one = case("campaign")
    place = Place(secured_kafka.address("SASL_SSL"), tmp_path / "data", client=settings)
    open_place = Place(secured_kafka.address("PLAINTEXT"), place.data)
    events = some_events(one.pipeline, 600, rate=0.5)
    prepare_topics([one.pipeline], place.brokers)
    send_all(events, open_place.bootstrap)
    job.run_once(pipeline_spark, one.pipeline, place)
    one.verify(Run(one.pipeline, open_place), events)

    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    status = ["pipeline", "status", "--json", "--bootstrap", place.bootstrap]
    done = CliRunner().invoke(app, [*status, "--config", str(file)])
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    refused = CliRunner().invoke(app, [*status, "--config", str(file), "-X", "sasl.password=not this"])
    assert refused.exit_code == 1
    assert "check the credentials" in refused.stderr
