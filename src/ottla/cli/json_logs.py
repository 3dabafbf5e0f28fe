"""Log lines for machines: one JSON object for each, whatever is logged.

    {"time": "2026-01-31T12:00:00.123Z", "level": "INFO", "logger": "ottla", "message": "shutting down"}

`fields` has what the caller gave as `extra`; `exception` is a traceback, in one text.
"""

import json
import logging
import time

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if fields:
            line["fields"] = fields
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        # A value that JSON does not have is written as its text: a log line must never be lost to its own field.
        return json.dumps(line, default=str)
