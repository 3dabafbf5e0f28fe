"""The consumers of a worker process, kept from task to task: Spark re-uses its Python workers.

A consumer reads for one task at a time and is assigned nothing in between, so that it fetches nothing then. One that
failed is closed and not used again. Only a few are kept: a worker serves queries with different settings.
"""

import json
import os
from collections import OrderedDict
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from ottla import Consumer
from ottla.client.errors import OttlaError

_MOST_KEPT: Final = 4
# Every record of a range is there when it is asked for: no fetch has to wait for one.
_FIXED: Final[Mapping[str, object]] = {
    "fetch.min.bytes": 1,
    "fetch.max.wait.ms": 20,
    "auto.offset.reset": "none",
    "enable.auto.commit": False,
    "allow.auto.create.topics": False,
}

_idle: OrderedDict[tuple[int, str], Consumer[Any, Any]] = OrderedDict()


@contextmanager
def borrowed(settings: Mapping[str, object]) -> Generator[Consumer[Any, Any], None, None]:
    """A consumer with these settings and nothing assigned."""
    key = (os.getpid(), json.dumps(sorted((name, str(value)) for name, value in settings.items())))
    consumer = _idle.pop(key, None)
    if consumer is None:
        consumer = Consumer(config={**settings, **_FIXED})
    try:
        yield consumer
        consumer.assign([])
    except BaseException:
        with suppress(OttlaError):
            consumer.close(timeout=0.5)
        raise
    _idle[key] = consumer
    while len(_idle) > _MOST_KEPT:
        _, oldest = _idle.popitem(last=False)
        with suppress(OttlaError):
            oldest.close(timeout=0.5)
