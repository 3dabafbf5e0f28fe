"""Logs for machines: one line, one object, whatever is in it."""

import json
import logging
import re
import sys
from typing import Any

from ottla.cli.json_logs import JsonFormatter


def formatted(record: logging.LogRecord) -> dict[str, Any]:
    text = JsonFormatter().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert isinstance(line, dict)
    return line


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("ottla.broker", logging.WARNING, __file__, 1, message, arguments, None)
    vars(made).update(extra)
    return made


def test_a_line_has_its_time_level_logger_and_message() -> None:
    one = record("%s-%d is\nslow", "orders", 3)
    one.created, one.msecs = 1_700_000_000.0625, 62.5
    assert formatted(one) == {
        "time": "2023-11-14T22:13:20.062Z",
        "level": "WARNING",
        "logger": "ottla.broker",
        "message": "orders-3 is\nslow",
    }


def test_times_are_in_utc() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", formatted(record("now"))["time"])


def test_what_the_caller_adds_is_in_the_fields_whatever_it_is() -> None:
    added = formatted(
        record(
            "x",
            topic="orders",
            partitions=[1, 2],
            odd={
                1,
            },
            error=OSError("gone"),
            text="ä\u2028",
        )
    )
    assert added["fields"] == {
        "topic": "orders",
        "partitions": [1, 2],
        "odd": "{1}",
        "error": "gone",
        "text": "ä\u2028",
    }


def test_a_traceback_is_one_text() -> None:
    failed = record("failed")
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        failed.exc_info = sys.exc_info()
    line = formatted(failed)
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: first\nsecond")


def test_a_real_logger_gives_no_fields_of_its_own() -> None:
    logger = logging.getLogger("ottla.test")
    made = logger.makeRecord(logger.name, logging.INFO, __file__, 1, "plain", (), None)
    assert "fields" not in formatted(made)
