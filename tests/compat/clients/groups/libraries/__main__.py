"""`python -m tests.compat.clients.groups.libraries <library> <bootstrap>`: members of groups, driven by lines.

A request is one line of fields between tabs: a call, the name of a member, arguments. An answer is "ok", a tab and a
number of lines, then these lines; or "error", a tab, a zero, a tab and a message. `GroupHost.java` speaks the same.
"""

from __future__ import annotations

import sys
import warnings

from tests.compat.clients.groups.libraries.member import Member, describe, event_line

NULL = "-"


def library(name: str) -> type[Member]:
    if name == "confluent":
        from tests.compat.clients.groups.libraries.confluent import ConfluentMember

        return ConfluentMember
    if name == "aiokafka":
        from tests.compat.clients.groups.libraries.aio import AiokafkaMember

        return AiokafkaMember
    from tests.compat.clients.groups.libraries.kafka_python import KafkaPythonMember

    return KafkaPythonMember


class Host:
    def __init__(self, kind: type[Member], bootstrap: str) -> None:
        self._kind = kind
        self._bootstrap = bootstrap
        self._members: dict[str, Member] = {}

    def answer(self, line: str) -> str:
        call, name, *arguments = line.rstrip("\n").split("\t")
        try:
            lines = self._join(name, *arguments) if call == "join" else self._call(call, name, arguments)
        except Exception as problem:
            return f"error\t0\t{describe(problem)}\n"
        return "".join([f"ok\t{len(lines)}\n", *(f"{text}\n" for text in lines)])

    def close(self) -> None:
        for member in self._members.values():
            member.leave()

    def _join(self, name: str, group: str, topic: str, settings: str) -> list[str]:
        words = dict(setting.split("=", 1) for setting in settings.split(","))
        self._members[name] = self._kind(self._bootstrap, group, topic, words)
        return []

    def _call(self, call: str, name: str, arguments: list[str]) -> list[str]:
        member = self._members[name]
        match call, *arguments:
            case "assigned", *_:
                return [",".join(map(str, member.assigned()))]
            case "records", first:
                return ["\t".join(map(str, record)) for record in member.records[int(first) :]]
            case "events", *_:
                return [event_line(*event) for event in member.events]
            case "error", *_:
                return [member.error]
            case "commit", how:
                member.do(lambda: member.commit(how))
            case "committed", partition:
                return [_or_null(member.do(lambda: member.committed(int(partition))))]
            case "seek", partition, offset:
                member.do(lambda: member.seek(int(partition), int(offset)))
            case "time", partition, timestamp_ms:
                return [_or_null(member.do(lambda: member.offset_at(int(partition), int(timestamp_ms))))]
            case "hang", hanging:
                member.hang(hanging == "true")
            case "leave", *_:
                self._members.pop(name).leave()
            case _:
                raise ValueError(f"unknown call {call} with {len(arguments)} arguments")
        return []


def _or_null(value: int | None) -> str:
    return NULL if value is None else str(value)


def main() -> None:
    warnings.simplefilter("ignore")
    host = Host(library(sys.argv[1]), sys.argv[2])
    for line in sys.stdin:
        sys.stdout.write(host.answer(line))
        sys.stdout.flush()
    host.close()


if __name__ == "__main__":
    main()
