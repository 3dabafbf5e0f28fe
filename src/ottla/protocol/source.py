"""Python source that is written line by line, compiled once, and shown in tracebacks."""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """The text of one function, together with the constants it names.

    `title` is where the text appears to come from; `linecache` knows it, so a traceback quotes the lines.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.constants: dict[str, Any] = {}
        self._lines: list[str] = []
        self._indent = ""

    def line(self, text: str) -> None:
        self._lines.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        outer, self._indent = self._indent, self._indent + "    "
        yield
        self._indent = outer

    def constant(self, name: str, value: object) -> str:
        """The name under which the function finds `value`; small immutable values are written out instead."""
        if value is None or type(value) in (bool, int, str, bytes):
            return repr(value)
        if self.constants.setdefault(name, value) is not value:
            raise ValueError(f"{self.title}: two constants want the name {name}")
        return name

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def compile(self, name: str) -> Callable[..., Any]:
        filename = f"<{self.title}>"
        text = self.text
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        scope = dict(self.constants)
        exec(compile(text, filename, "exec"), scope)
        function: Callable[..., Any] = scope[name]
        return function
