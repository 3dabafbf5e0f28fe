"""All questions, in the order in which they are asked: what only reads comes first.

The short form asks every kind of question in two of its versions, drawn by the seed, and the first good request of an
API in all of them. The long form asks everything in every version, and pairs of changes at random.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from tests.compat.questions import (
    about_cluster,
    about_configs,
    about_groups,
    about_operations,
    about_records,
    about_topics,
    about_transactions,
)
from tests.compat.questions.framings import framing_cases, header_cases
from tests.compat.questions.knowledge import COORDINATES, About, Base, knowledge_of
from tests.compat.questions.mutations import Mutation, mutations
from tests.compat.questions.question import Ask, Case, with_own_topic
from tests.compat.questions.sequences import sequences
from tests.compat.questions.sequences_of_groups import group_sequences
from tests.compat.questions.sequences_of_transactions import transaction_sequences

from ottla.protocol.api_keys import ApiKey
from ottla.protocol.errors import UnencodableMessage, UnsupportedVersion
from ottla.protocol.message import Request
from ottla.protocol.registry import request_class

# What Kafka never answers: it is not waited for long.
UNANSWERED = {
    ApiKey.ALTER_CONFIGS: ("resources doubled",),
    ApiKey.PRODUCE: ("records=None", "no records"),
    ApiKey.JOIN_GROUP: ("protocols doubled",),
    ApiKey.ADD_PARTITIONS_TO_TXN: ("transactions=[]",),
    ApiKey.WRITE_TXN_MARKERS: ("topics doubled", "partition_indexes doubled"),
}
KNOWLEDGE = (
    about_cluster,
    about_configs,
    about_groups,
    about_operations,
    about_records,
    about_topics,
    about_transactions,
)


@dataclass(frozen=True)
class Form:
    """How much is asked. `versions` of each kind of question, None for all; `pairs` of changes for each base."""

    versions: int | None
    pairs: int
    least: int


SHORT = Form(versions=1, pairs=0, least=12)
LONG = Form(versions=None, pairs=40, least=12)


def all_cases(seed: int, form: Form, keys: Iterable[ApiKey], prefix: str = "q") -> list[Case]:
    """The questions about these APIs; the same seed gives the same ones, whatever other APIs there are.

    Their own topics have names that begin with `prefix`.
    """
    keys = sorted(keys, key=lambda key: (knowledge_of(key).turn, key))
    cases: list[Case] = []
    late: list[Case] = []
    for key in keys:
        asked = [
            *_of_api(key, random.Random(f"{seed} {key.name}"), form),
            *framing_cases(key, random.Random(f"{seed} frames {key.name}"), form.versions is None),
        ]
        (late if knowledge_of(key).turn == COORDINATES else cases).extend(asked)
    for case in _sequences(set(keys), seed, form):
        (late if case.late else cases).append(case)
    if ApiKey.API_VERSIONS in keys:
        cases += header_cases()
    cases += [replace(case, late=True) for case in late]
    return [with_own_topic(case, f"{prefix}-{number}") for number, case in enumerate(cases)]


def _sequences(keys: set[ApiKey], seed: int, form: Form) -> Iterator[Case]:
    kinds: dict[str, list[Case]] = {}
    for case in chain(sequences(), group_sequences(), transaction_sequences()):
        if {ask.api for ask in case.asks} <= keys:
            kinds.setdefault(f"{case.api.name} {case.label}", []).append(case)
    for kind, cases in kinds.items():
        dice = random.Random(f"{seed} {kind}")
        wanted = len(cases) if form.versions is None else min(form.versions, len(cases))
        for number in sorted(dice.sample(range(len(cases)), wanted)):
            yield cases[number]


def _of_api(key: ApiKey, dice: random.Random, form: Form) -> Iterator[Case]:
    cls = request_class(key)
    assert cls is not None
    known = knowledge_of(key)
    kinds: dict[str, list[Case]] = {}
    always: list[Case] = []
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for number, base in enumerate(known.bases(version)):
            case = _case(key, version, base, base.label, base.request)
            if number == 0:
                always.append(case)
            else:
                kinds.setdefault(case.label, []).append(case)
            if base.vary:
                for changed in _varied(key, version, base, known, dice, form):
                    kinds.setdefault(changed.label, []).append(changed)
    yield from always
    yield from _chosen(kinds, dice, form, len(range(cls.MIN_VERSION, cls.MAX_VERSION + 1)))


def _varied(key: ApiKey, version: int, base: Base, known: About, dice: random.Random, form: Form) -> Iterator[Case]:
    changes = [*mutations(base.request, version, known.hints)]
    for change in changes:
        request = _encodable(base.request, version, change)
        if request is not None:
            yield _case(key, version, base, f"{base.label}: {change.label}", request)
    for _ in range(form.pairs if len(changes) > 1 else 0):
        one, other = dice.sample(changes, 2)
        if one.path.startswith(other.path) or other.path.startswith(one.path):
            continue
        request = _encodable(base.request, version, one, other)
        if request is not None:
            yield _case(key, version, base, f"{base.label}: {one.label} {other.label}", request)


def _encodable(request: Request, version: int, *changes: Mutation) -> Request | None:
    try:
        for change in changes:
            request = change.on(request)
        request.encode(version)
    except (UnencodableMessage, UnsupportedVersion, IndexError, AttributeError, TypeError):
        return None
    return request


def _chosen(kinds: dict[str, list[Case]], dice: random.Random, form: Form, versions: int) -> Iterator[Case]:
    asked: dict[int, int] = {}
    spare: list[Case] = []
    for cases in kinds.values():
        wanted = len(cases) if form.versions is None else min(form.versions, len(cases))
        chosen = dice.sample(range(len(cases)), wanted)
        for number, case in enumerate(cases):
            if number in chosen:
                asked[case.version] = asked.get(case.version, 0) + 1
                yield case
            else:
                spare.append(case)
    dice.shuffle(spare)
    for case in spare:
        if asked.get(case.version, 0) < form.least:
            asked[case.version] = asked.get(case.version, 0) + 1
            yield case


def _case(key: ApiKey, version: int, base: Base, label: str, request: Request) -> Case:
    return Case(
        key,
        version,
        label,
        (Ask(request, version, only=base.only), *base.then),
        base.topics,
        alone=base.alone,
        silent=base.silent,
        hangs=base.hangs or any(label.endswith(end) for end in UNANSWERED.get(key, ())),
    )
