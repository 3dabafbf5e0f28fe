"""The command in this process: what it prints, and how it ends."""

import json
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from ottla.cli.main import app


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    out_bytes: bytes
    err: str

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class CommandLine:
    """`ottla` with the brokers in its environment."""

    bootstrap_servers: str

    def __call__(self, *arguments: str, stdin: bytes = b"", code: int | None = 0) -> Ended:
        """`code` is how it must end; None where that is of no interest."""
        environment = {
            "OTTLA_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "TERM": "dumb",
            "OTTLA_CLIENT_CONFIG": None,
        }
        done = CliRunner().invoke(app, list(arguments), input=stdin, env=environment, catch_exceptions=False)
        ended = Ended(done.exit_code, done.stdout, done.stdout_bytes, done.stderr)
        assert code is None or ended.code == code, ended
        return ended
