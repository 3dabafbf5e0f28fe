"""Reading properties files of brokers and clients, in the format of Java's properties files.

Unlike Java, blanks at the end of a value are dropped: nobody means them, and nobody sees them in an editor.
"""

import re

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*")
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_TRAILING_BLANKS = re.compile(r"((?:\\.|[^\\])*?)[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values: `#` and `!` begin comments, a backslash joins lines, the last value of a key wins."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        properties[_unescape(key.group())] = _unescape(line[separator.end() :])
    return properties


def _logical_lines(text: str) -> list[str]:
    """Lines without comments, joined where they end in a backslash that is not itself escaped."""
    lines: list[str] = []
    joined = ""
    for line in _LINE_END.split(text):
        stripped = line.lstrip(_BLANKS)
        if not joined and (not stripped or stripped[0] in "#!"):
            continue
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            joined += stripped[:-1]
            continue
        lines.append(_without_trailing_blanks(joined + stripped))
        joined = ""
    if joined:
        lines.append(_without_trailing_blanks(joined))
    return lines


def _without_trailing_blanks(line: str) -> str:
    kept = _TRAILING_BLANKS.fullmatch(line)
    return line if kept is None else kept.group(1)


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _ESCAPED.get(escaped, escaped)

    return _ESCAPE.sub(replace, text)
