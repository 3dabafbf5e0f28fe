"""Compile and run small Java programs, and Kafka's own tools, against a folder of jars."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.peers.paths import CACHE, PeerMissing

# The programs are short: the quick compiler starts them sooner, and one collector thread leaves cores to the broker.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m")

_LOG4J = """\
log4j.rootLogger=WARN, err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=%p %m (%c)%n
"""


def java_executable(name: str = "java") -> str:
    found = shutil.which(name)
    if found is None:
        raise PeerMissing(f"`{name}` is not on the PATH: install a Java 17 JDK (Debian: openjdk-17-jdk-headless)")
    return found


def compile_java(sources: list[Path], libs: Path) -> Path:
    """The folder with the classes of `sources`, compiled once for each content and set of jars."""
    key = hashlib.sha256(str(libs).encode())
    for source in sources:
        key.update(source.read_bytes())
    place = CACHE / "java" / f"{sources[0].stem}-{key.hexdigest()[:16]}"
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        classes = Path(temporary) / "classes"
        command = [java_executable("javac"), "-Xlint:all,-try,-processing", "-Werror", "-cp", f"{libs}/*"]
        done = subprocess.run(
            [*command, "-d", str(classes), *map(str, sources)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"javac failed for {sources[0].name} against {libs}:\n{done.stdout}{done.stderr}")
        try:
            classes.rename(place)
        except OSError:
            if not place.exists():
                raise
    return place


def java_command(main_class: str, arguments: list[str], libs: Path, classes: Path | None = None) -> list[str]:
    """The command line that runs `main_class`, with Kafka's own logging on stderr, warnings and up."""
    path = [str(classes)] if classes else []
    logging = f"-Dlog4j.configuration=file:{_log4j_file()}"
    return [
        java_executable(), *JVM_FLAGS, logging, "-cp", os.pathsep.join([*path, f"{libs}/*"]), main_class, *arguments
    ]  # fmt: skip


def run_java(
    main_class: str,
    arguments: list[str],
    libs: Path,
    classes: Path | None = None,
    timeout_seconds: float = 60.0,
) -> subprocess.CompletedProcess[str]:
    """Run to the end and answer output and exit code; what the code means is the caller's business."""
    command = java_command(main_class, arguments, libs, classes)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_seconds, check=False)


def _log4j_file() -> Path:
    path = CACHE / "java" / "log4j.properties"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(_LOG4J)
        temporary.rename(path)
    return path
