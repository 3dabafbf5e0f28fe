"""Where installed peers live: `.cache/peers/<name>/` under the root of the repository."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache"
PEERS = CACHE / "peers"

KAFKA_VERSION = "4.3.1"
CLIENTS39_VERSION = "3.9.2"
SPARK_VERSION = "4.2.0"
# A newer PySpark than that of the environment. Spark's own connector is not published for it.
NEWER_PYSPARK_VERSION = "4.3.0"
KAFKA_PYTHON_VERSION = "3.0.12"

KAFKA_LIBS = PEERS / f"kafka-{KAFKA_VERSION}" / "libs"
CLIENTS39_LIBS = PEERS / f"kafka-clients-{CLIENTS39_VERSION}" / "libs"
NEWER_PYSPARK = PEERS / f"pyspark-{NEWER_PYSPARK_VERSION}" / "packages"
SPARK_CONNECTOR_LIBS = PEERS / f"spark-connector-{SPARK_VERSION}" / "libs"
KAFKA_PYTHON_SUITE = PEERS / f"kafka-python-{KAFKA_PYTHON_VERSION}" / "source"


class PeerMissing(RuntimeError):
    """A peer or a tool is not on this machine; the message says what to run to get it."""


def require_libs(directory: Path, package: str) -> Path:
    """Answer `directory` when it holds jars; otherwise say which install command brings them."""
    if not any(directory.glob("*.jar")):
        raise PeerMissing(f"no jars in {directory}: run `python -m tests.peers.install {package}`")
    return directory
