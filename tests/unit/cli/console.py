"""Console blocks of a guide as commands: pipes of `echo`, `cat` and `ottla`, and the output that the guide shows."""

import re
import shlex
from dataclasses import dataclass

from tests.unit.cli.command_line import CommandLine

ANYTHING = "..."


@dataclass(frozen=True)
class Example:
    command: str
    shown: list[str]


def examples(text: str) -> list[Example]:
    found: list[Example] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Example(line[2:], []))
            else:
                found[-1].shown.append(line)
    return found


def run(example: Example, ottla: CommandLine) -> list[str]:
    """What the person in front of the screen sees, standard output first."""
    seen, out = "", b""
    for part in example.command.split(" | "):
        words = shlex.split(part)
        if words[0] == "echo":
            out = " ".join(words[1:]).encode() + b"\n"
            continue
        assert words[0] == "ottla", part
        ended = ottla(*words[1:], stdin=out, code=None)
        out = ended.out_bytes
        seen += ended.err
    return (out.decode() + seen).splitlines()


def matches(shown: list[str], seen: list[str]) -> bool:
    """Line by line; `...` stands for anything within a line, and blanks between words do not count."""
    return len(shown) == len(seen) and all(map(_is_like, shown, seen))


def _is_like(shown: str, seen: str) -> bool:
    parts = [re.escape(" ".join(part.split())) for part in shown.split(ANYTHING)]
    pattern = r"\s*.*?\s*".join(parts)
    return re.fullmatch(pattern, " ".join(seen.split())) is not None
