"""One PostgreSQL server on loopback, for tests that read its log: `wal_level=logical`, everybody is trusted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.peers.paths import PeerMissing
from tests.peers.ports import LOOPBACK, free_port
from tests.peers.process import ServerProcess

USER = "bank"
# Who runs the server where the tests are root, whom PostgreSQL refuses.
_SYSTEM_USER = "postgres"
_PROGRAMS = Path("/usr/lib/postgresql")


def postgres_programs() -> Path | None:
    """Where initdb and postgres are: on the PATH, or where Debian puts each version."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = [path for path in _PROGRAMS.glob("*/bin") if (path / "initdb").exists()]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


class PostgresServer(ServerProcess):
    """The server, in a directory that its own user can reach; `remove` ends it and deletes that."""

    name = "postgres"
    start_timeout_seconds = 120.0

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        programs = postgres_programs()
        if programs is None:
            raise PeerMissing("there is no PostgreSQL: run `python -m tests.peers.install postgresql`")
        self._programs = programs
        self._home = Path(tempfile.mkdtemp(prefix="ottla-postgres-"))
        self.data_directory = self._home / "data"

    @property
    def address(self) -> str:
        return f"postgresql://{USER}@{self.bootstrap}/postgres"

    def prepare(self) -> None:
        self.port = self.port or free_port()
        if self.data_directory.exists():
            return
        if os.geteuid() == 0:
            shutil.chown(self._home, _SYSTEM_USER)
        make = ["initdb", "--pgdata", str(self.data_directory), "--username", USER, "--auth", "trust", "--no-sync"]
        subprocess.run(self._as_user([*make, "--encoding", "UTF8"]), check=True, capture_output=True)

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            "wal_level": "logical",
            "fsync": "off",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return self._as_user(["postgres", "-D", str(self.data_directory), *options])

    def is_ready(self) -> bool:
        from psycopg import pq

        return pq.PGconn.ping(self.address.encode()) == pq.Ping.OK

    def stop(self) -> int:
        if self.running:
            # Ends sessions, too; on SIGTERM it would wait for them.
            os.kill(self.pid, signal.SIGINT)
        return super().stop()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._home)

    def _as_user(self, command: list[str]) -> list[str]:
        program = [str(self._programs / command[0]), *command[1:]]
        if os.geteuid() != 0:
            return program
        # Becomes the program, so that a signal to the process is one to the server.
        return ["setpriv", f"--reuid={_SYSTEM_USER}", f"--regid={_SYSTEM_USER}", "--clear-groups", *program]
