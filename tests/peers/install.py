"""Bring the peers onto this machine, by package name and with the ordinary tools.

    python -m tests.peers.install [kafka|clients39|spark-connector|kcat|chromium|postgresql|kafka-python-suite|
                                   newer-pyspark|all]

Each peer goes into `.cache/peers/<name>/`. A stamp file beside it records what was asked for, so a second run does
nothing and a changed version is fetched anew; it is written last, so a run that was cut off is repeated.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.peers.browser import browser
from tests.peers.newer_pyspark import install_newer_pyspark
from tests.peers.paths import (
    CLIENTS39_LIBS,
    CLIENTS39_VERSION,
    KAFKA_LIBS,
    KAFKA_VERSION,
    SPARK_CONNECTOR_LIBS,
    SPARK_VERSION,
    PeerMissing,
)
from tests.peers.postgres import postgres_programs
from tests.peers.suites import install_kafka_python_suite

_SLF4J = ("org.slf4j", "slf4j-reload4j", "1.7.36")

_KAFKA = (("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), ("org.apache.kafka", "kafka-tools", KAFKA_VERSION), _SLF4J)
_CLIENTS39 = (("org.apache.kafka", "kafka-clients", CLIENTS39_VERSION), _SLF4J)

# Each jar alone: the token provider of the connector's own version is not published everywhere, and the poms of Spark
# lead to repositories that are not always there. 4.0.0 of the provider has all the connector asks of it.
_SPARK_CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", CLIENTS39_VERSION),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ottla.peers</groupId>
  <artifactId>{name}</artifactId>
  <version>1</version>
{body}
</project>
"""

_COPIES = """\
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId>
    <artifactId>maven-dependency-plugin</artifactId>
    <configuration><artifactItems>
{items}
    </artifactItems></configuration>
  </plugin></plugins></build>"""

Artifact = tuple[str, str, str]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _need(tool: str, package: str) -> str:
    found = shutil.which(tool)
    if found is None:
        raise PeerMissing(f"`{tool}` is not on the PATH: install {package}, then run this again")
    return found


def _run(command: list[str], directory: Path | None = None, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode != 0:
        output = done.stdout.decode(errors="replace")[-4000:]
        raise PeerMissing(f"`{' '.join(command)}` ended with code {done.returncode}:\n{output}")


def _stamped(libs: Path, artifacts: tuple[Artifact, ...], bring: Callable[[], None]) -> None:
    """Run `bring` unless the stamp beside `libs` says that exactly these artifacts are there."""
    name = libs.parent.name
    stamp = libs.parent / "installed"
    wanted = "".join(":".join(artifact) + "\n" for artifact in artifacts)
    if stamp.exists() and stamp.read_text() == wanted and any(libs.glob("*.jar")):
        _say(f"{name}: already there")
        return
    _need("java", "a Java 17 JDK (Debian: openjdk-17-jdk-headless)")
    _need("mvn", "Maven (Debian: maven)")
    _say(f"{name}: fetching")
    libs.mkdir(parents=True, exist_ok=True)
    bring()
    stamp.write_text(wanted)
    _say(f"{name}: {len(list(libs.glob('*.jar')))} jars in {libs}")


def _elements(element: str, artifacts: tuple[Artifact, ...]) -> str:
    """Artifacts as a pom names them."""
    parts = ("groupId", "artifactId", "version")
    return "\n".join(
        f"    <{element}>"
        + "".join(f"<{part}>{value}</{part}>" for part, value in zip(parts, artifact, strict=True))
        + f"</{element}>"
        for artifact in artifacts
    )


def _with_dependencies(libs: Path, artifacts: tuple[Artifact, ...]) -> None:
    """These artifacts and all they need at run time, resolved by Maven."""

    def bring() -> None:
        body = f"  <dependencies>\n{_elements('dependency', artifacts)}\n  </dependencies>"
        (libs.parent / "pom.xml").write_text(_POM.format(name=libs.parent.name, body=body))
        _run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"], libs.parent)

    _stamped(libs, artifacts, bring)


def install_kafka() -> None:
    _with_dependencies(KAFKA_LIBS, _KAFKA)


def install_clients39() -> None:
    _with_dependencies(CLIENTS39_LIBS, _CLIENTS39)


def install_spark_connector() -> None:
    libs = SPARK_CONNECTOR_LIBS

    def bring() -> None:
        body = _COPIES.format(items=_elements("artifactItem", _SPARK_CONNECTOR))
        (libs.parent / "pom.xml").write_text(_POM.format(name=libs.parent.name, body=body))
        _run(["mvn", "-q", "-B", "dependency:copy", "-DoutputDirectory=libs"], libs.parent)

    _stamped(libs, _SPARK_CONNECTOR, bring)


def _install_package(name: str, package: str, otherwise: str) -> None:
    """With the system's package manager, as root."""
    _need("apt-get", otherwise)
    if os.geteuid() != 0:
        raise PeerMissing(f"{name} is not installed and this is not root: run `sudo apt-get install {package}`")
    _say(f"{name}: fetching")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    try:
        _run(install, environment=environment)
    except PeerMissing:
        _run(["apt-get", "update", "-q"], environment=environment)
        _run(install, environment=environment)


def install_kcat() -> None:
    if shutil.which("kcat"):
        _say("kcat: already there")
        return
    other = "kcat with your system's package manager (it is named kcat, or kafkacat where it is older)"
    _install_package("kcat", "kcat", other)
    _say(f"kcat: {shutil.which('kcat')}")


def install_chromium() -> None:
    if browser():
        _say("chromium: already there")
        return
    _install_package("chromium", "chromium", "Chromium with your system's package manager")
    _say(f"chromium: {browser()}")


def install_postgresql() -> None:
    if postgres_programs() is not None:
        _say("postgresql: already there")
        return
    try:
        _install_package("postgresql", "postgresql", "PostgreSQL's server with your system's package manager")
    except PeerMissing as missing:
        _say(f"postgresql: the tests that need it will be skipped: {missing}")
    else:
        _say(f"postgresql: {postgres_programs()}")


def install_suite_of_kafka_python() -> None:
    _say(f"kafka-python-suite: {'fetched' if install_kafka_python_suite() else 'already there'}")


def install_pyspark() -> None:
    _say(f"newer-pyspark: {'installed' if install_newer_pyspark() else 'already there'}")


INSTALLERS: dict[str, Callable[[], None]] = {
    "kafka": install_kafka,
    "clients39": install_clients39,
    "spark-connector": install_spark_connector,
    "kcat": install_kcat,
    "chromium": install_chromium,
    "postgresql": install_postgresql,
    "kafka-python-suite": install_suite_of_kafka_python,
    "newer-pyspark": install_pyspark,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.peers.install", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer", nargs="*", default=["all"], help=f"{', '.join(INSTALLERS)} or all (the default)")
    chosen: list[str] = parser.parse_args(arguments).peer
    if unknown := [name for name in chosen if name not in (*INSTALLERS, "all")]:
        parser.error(f"unknown peer {', '.join(unknown)}: expected {', '.join(INSTALLERS)} or all")
    failures = 0
    for name in INSTALLERS if "all" in chosen else chosen:
        try:
            INSTALLERS[name]()
        except PeerMissing as problem:
            _say(f"{name}: {problem}")
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
