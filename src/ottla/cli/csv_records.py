"""Records as CSV (RFC 4180, with lines that end in a newline), out only: for spreadsheets and data frames.

    topic,partition,offset,timestamp,key,value,headers
    orders,0,7,1767225600000,42,"tea, green","[[""source"", ""shop""]]"

A null is an empty cell, an empty text a quoted one. The timestamp is in milliseconds, headers are JSON as in JSON
lines, so are keys and values that are no UTF-8: {"base64": "..."}. Most readers of CSV tell neither nulls from empty
texts nor that object from a text, so `ottla cp` does not read it back.
"""

import re

from ottla.cli.formats import RecordLike
from ottla.cli.json_records import base64_json, headers_json

CSV_HEAD = "topic,partition,offset,timestamp,key,value,headers\n"
_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$')


def to_csv(record: RecordLike) -> str:
    """One row, with its end."""
    headers = headers_json(record.headers) if record.headers else None
    place = f"{_cell(record.topic)},{record.partition},{record.offset},{record.timestamp}"
    return f"{place},{_content(record.key)},{_content(record.value)},{_cell(headers)}\n"


def _content(content: bytes | None) -> str:
    if content is None:
        return ""
    try:
        return _cell(content.decode())
    except UnicodeDecodeError:
        return _cell(base64_json(content))


def _cell(text: str | None) -> str:
    if text is None:
        return ""
    if text and not _NEEDS_QUOTES.search(text):
        return text
    quoted = text.replace('"', '""')
    return f'"{quoted}"'
