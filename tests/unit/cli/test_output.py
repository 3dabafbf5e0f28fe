"""Tables on narrow screens."""

import io

from rich.console import Console

from ottla.cli.output import table_of


def test_numbers_stay_whole_where_texts_fold() -> None:
    row = {"group": "billing-of-the-year", "topic": "orders", "committed": 1234567, "end": 12345678, "new": 99999}
    shown = io.StringIO()
    Console(file=shown, width=40).print(table_of(list(row), [row]))
    assert "billing-of-the-year" not in shown.getvalue()
    for number in ("1234567", "12345678", "99999"):
        assert number in shown.getvalue().split()
