"""What docs/OPERATIONS.md says is what the broker does."""

import re
from pathlib import Path

from ottla.broker.metrics import FAMILIES
from ottla.broker.metrics_text import Family

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
SAMPLE_SUFFIXES = ("", "_bucket", "_sum", "_count")


def test_the_table_of_metrics_is_what_is_rendered() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram|summary) \| ([^|]*) \| ([^|]+) \|$", DOCUMENT, re.M)
    documented = [
        Family(name, kind, text, tuple(label.strip() for label in labels.split(",")) if labels.strip() else ())
        for name, kind, labels, text in rows
    ]
    assert documented == list(FAMILIES)


def test_metrics_that_are_mentioned_exist() -> None:
    names = {family.name + suffix for family in FAMILIES for suffix in SAMPLE_SUFFIXES}
    mentioned = set(re.findall(r"\b(?:kafka|ottla|process|python)_[a-z_]+", DOCUMENT)) - {"ottla_"}
    assert mentioned
    assert mentioned <= names
