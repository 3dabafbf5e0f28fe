"""The beginning and the end of a sync client, and of the thread in which it lives."""

import weakref
from contextlib import suppress
from typing import Any

from ottla.client.errors import ClientClosed
from ottla.client.sync.loop_thread import LoopThread, Work


def closes(thread: LoopThread, owner: object) -> "weakref.finalize[[], object]":
    """End the thread when its owner is forgotten without having been closed."""
    finalizer = weakref.finalize(owner, thread.close)
    finalizer.atexit = False
    return finalizer


def started(thread: LoopThread, owner: object, start: Work) -> "weakref.finalize[[], object]":
    """Start a client; what ends its thread. One that could not be started leaves no thread behind."""
    finalizer = closes(thread, owner)
    try:
        thread.run(start)
    except BaseException:
        finalizer()
        raise
    return finalizer


def ended(
    thread: LoopThread, finalizer: "weakref.finalize[[], object]", close: Work, /, *args: Any, **options: Any
) -> None:
    """Close a client, and then its thread. Whoever closes it meanwhile waits for the same end: `close` sees to that."""
    if not finalizer.alive:
        return
    try:
        # Somebody else may be through with it first.
        with suppress(ClientClosed):
            thread.run(close, *args, **options)
    finally:
        finalizer()
