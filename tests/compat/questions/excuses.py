"""The differences that docs/COMPATIBILITY.md excuses: which, why, and how many questions each of them covers.

An excuse is a row of the table under "Excused differences":

    | API | versions | question | field | Kafka | Ottla | cases | reason |

The API and the versions are those of the question, also where the difference is in a request that looks at its effect.
`question` is its label, with the number of the request behind it where only that one is meant. `field` is a path of
names, with the key of an element in brackets where only that one is meant. `*` matches anything, and ` or ` stands
between alternatives.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tests.compat.questions.answers import Difference
from tests.compat.questions.question import Case
from tests.peers.paths import REPOSITORY

from ottla.protocol.api_keys import ApiKey

PAGE = REPOSITORY / "docs" / "COMPATIBILITY.md"
HEADING = "## Excused differences"
TOTAL = re.compile(r"^Questions excused in all: (\d+)$", re.MULTILINE)
ALL = "*"
OR = " or "


@dataclass(frozen=True)
class Excuse:
    api: str
    versions: str
    question: str
    field: str
    kafka: str
    ottla: str
    cases: int
    reason: str

    def covers(self, case: Case, request: int, difference: Difference) -> bool:
        return (
            (self.api == ALL or api_name(case.api) in self.api.split(OR))
            and self._has_version(case.version)
            and any(
                self._patterns["question"].fullmatch(label)
                for label in (case.label, f"{case.label}, request {request}")
            )
            and any(self._patterns["field"].fullmatch(path) for path in (difference.path, difference.place))
            and self._patterns["kafka"].fullmatch(difference.kafka) is not None
            and self._patterns["ottla"].fullmatch(difference.ottla) is not None
        )

    def _has_version(self, version: int) -> bool:
        if self.versions == ALL:
            return True
        first, _, last = self.versions.partition(" to ")
        return int(first) <= version <= int(last or first)

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        return {
            name: re.compile(
                "|".join(re.escape(part).replace(r"\*", ".*") for part in getattr(self, name).split(OR)), re.DOTALL
            )
            for name in ("question", "field", "kafka", "ottla")
        }

    def __str__(self) -> str:
        return f"{self.api} {self.versions} {self.question}, {self.field}: {self.kafka} / {self.ottla}"


def api_name(key: ApiKey) -> str:
    return "".join(word.capitalize() for word in key.name.split("_"))


def read_excuses(page: str | None = None) -> list[Excuse]:
    text = PAGE.read_text() if page is None else page
    _, _, section = text.partition(HEADING)
    section = section.split("\n## ")[0]
    rows = [
        [cell.strip().strip("`") for cell in line.strip().strip("|").split(" | ")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return [
        Excuse(row[0], row[1], row[2], row[3], row[4], row[5], int(row[6]), row[7])
        for row in rows
        if len(row) == 8 and row[6].isdecimal()
    ]


def excused_in_all(page: str | None = None) -> int:
    """How many questions may be excused by all rows together."""
    found = TOTAL.search(PAGE.read_text() if page is None else page)
    return int(found[1]) if found else 0


def find(excuses: Iterable[Excuse], case: Case, request: int, difference: Difference) -> Excuse | None:
    """The excuse for a difference in the answer to one of the case's requests, which are counted from 1."""
    return next((excuse for excuse in excuses if excuse.covers(case, request, difference)), None)
