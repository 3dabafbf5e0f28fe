"""RE2's syntax, read into a tree.

    alternative := sequence ("|" sequence)*
    sequence    := (atom quantifier?)*
    atom        := character | "." | class | escape | "(" alternative ")" | "^" | "$"

What RE2 refuses is refused: backreferences, looking ahead or behind, one quantifier right after another.
"""

from dataclasses import dataclass

from ottla.regex.classes import PERL, POSIX, UNICODE, Takes, among, any_of, anything, between, in_any_case, negated

MAX_DEPTH = 100
MAX_REPEAT = 1_000
_ESCAPED = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_OCTAL = "01234567"


class RegexError(Exception):
    """The expression is none, or is one that is not supported."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a class."""

    takes: Takes


@dataclass(frozen=True, slots=True)
class Position:
    """A place, and no character: `^`, `$`, of a line `^m`, `$m`; `b` where a word begins or ends, `B` elsewhere."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    choices: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` is None when there is no limit."""

    part: "Node"
    least: int
    most: int | None


Node = Characters | Position | Sequence | Alternatives | Repeat


class Parser:
    """Reads one expression; `parse` gives the tree or raises."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._flags = frozenset[str]()
        self._names: set[str] = set()

    def parse(self) -> Node:
        tree = self._alternatives(0)
        if self._position < len(self._text):
            raise self._error("a parenthesis is closed that was not opened")
        return tree

    def _error(self, problem: str) -> RegexError:
        return RegexError(f"{problem}, at character {self._position}")

    def _peek(self, ahead: int = 0) -> str:
        place = self._position + ahead
        return self._text[place] if place < len(self._text) else ""

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise self._error("the expression ends too early")
        self._position += 1
        return character

    def _starts(self, prefix: str) -> bool:
        return self._text.startswith(prefix, self._position)

    def _until(self, end: str, problem: str) -> str:
        """The text up to `end`, which is passed."""
        place = self._text.find(end, self._position)
        if place < 0:
            raise self._error(problem)
        found = self._text[self._position : place]
        self._position = place + len(end)
        return found

    def _alternatives(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._error(f"parentheses are nested deeper than {MAX_DEPTH}")
        choices = [self._sequence(depth)]
        while self._peek() == "|":
            self._position += 1
            choices.append(self._sequence(depth))
        return choices[0] if len(choices) == 1 else Alternatives(tuple(choices))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self._peek() and self._peek() not in "|)":
            is_brace = self._peek() == "{"
            parts.extend(self._atoms(depth))
            quantifier = self._quantifier()
            if quantifier is None:
                continue
            if not parts or is_brace:
                raise self._error("there is nothing to repeat")
            parts[-1] = Repeat(parts[-1], *quantifier)
            if self._quantifier() is not None:
                raise self._error("a repetition is repeated; use parentheses")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quantifier(self) -> tuple[int, int | None] | None:
        """How often, if that is what comes next. Greedy or not makes no difference to whether a name matches."""
        start = self._position
        character = self._peek()
        if character and character in "*+?":
            self._position += 1
            limits: tuple[int, int | None] | None = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        elif character == "{":
            limits = self._counted()
        else:
            return None
        if limits is None:
            self._position = start
            return None
        if self._peek() == "?":
            self._position += 1
        return limits

    def _counted(self) -> tuple[int, int | None] | None:
        """`{n}`, `{n,}` or `{n,m}`; anything else that begins with a brace is just characters."""
        place = self._text.find("}", self._position)
        least, comma, most = self._text[self._position + 1 : max(place, 0)].partition(",")
        if place < 0 or not _is_number(least) or (most and not _is_number(most)):
            return None
        self._position = place + 1
        limits = int(least), (int(most) if most else None if comma else int(least))
        if limits[0] > MAX_REPEAT or (limits[1] is not None and not limits[0] <= limits[1] <= MAX_REPEAT):
            raise self._error(f"repetitions go up to {MAX_REPEAT}, the smaller number first")
        return limits

    def _atoms(self, depth: int) -> list[Node]:
        """What comes next; several where text is quoted, none for a change of flags."""
        if self._peek() in ("*", "+", "?") or (self._peek() == "{" and self._quantifier() is not None):
            raise self._error("there is nothing to repeat")
        character = self._next()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return [Characters(self._class())]
        if character == ".":
            return [Characters(anything if "s" in self._flags else negated(among("\n")))]
        if character in "^$":
            return [Position(character + "m" if "m" in self._flags else character)]
        if character == "\\":
            return self._escape()
        return [Characters(self._literal(character))]

    def _literal(self, character: str) -> Takes:
        return self._folded(among(character))

    def _folded(self, takes: Takes) -> Takes:
        return in_any_case(takes) if "i" in self._flags else takes

    def _group(self, depth: int) -> list[Node]:
        before = self._flags
        if self._peek() == "?":
            self._position += 1
            if self._starts("P<") or (self._peek() == "<" and self._peek(1) not in ("=", "!")):
                self._until("<", "a name is missing")
                name = self._until(">", "the name of a group does not end")
                if not name or not all(character == "_" or character.isalnum() for character in name):
                    raise self._error(f"{name!r} is no name for a group")
                if name in self._names:
                    raise self._error(f"two groups are called {name!r}")
                self._names.add(name)
            elif not self._read_flags():
                return []
        tree = self._alternatives(depth + 1)
        if self._peek() != ")":
            raise self._error("a parenthesis is not closed")
        self._position += 1
        self._flags = before
        return [tree]

    def _read_flags(self) -> bool:
        """Whether a group follows to which they are limited."""
        is_on = True
        while True:
            character = self._next()
            if character in "imsU":
                self._flags = self._flags | {character} if is_on else self._flags - {character}
            elif character == "-" and is_on:
                is_on = False
            elif character in ":)":
                if not is_on and self._peek(-2) == "-":
                    raise self._error("flags are missing")
                return character == ":"
            else:
                raise self._error(f"(?{character} is not supported")

    def _escape(self) -> list[Node]:
        character = self._next()
        if character in "bB":
            return [Position(character)]
        if character in "Az":
            return [Position("^" if character == "A" else "$")]
        if character == "Q":
            end = self._text.find("\\E", self._position)
            quoted = self._text[self._position : end if end >= 0 else len(self._text)]
            self._position += len(quoted) + (2 if end >= 0 else 0)
            return [Characters(self._literal(one)) for one in quoted]
        known = self._escaped_class(character)
        return [Characters(self._literal(self._escaped(character)) if known is None else known)]

    def _escaped_class(self, character: str) -> Takes | None:
        if character in PERL:
            return PERL[character]
        if character not in "pP":
            return None
        name = self._next()
        if name == "{":
            name = self._until("}", "the name of a class does not end")
        is_negated = (character == "P") != name.startswith("^")
        found = UNICODE.get(name.removeprefix("^"))
        if found is None:
            raise self._error(f"there is no class {name!r} here")
        return negated(self._folded(found)) if is_negated else self._folded(found)

    def _escaped(self, character: str) -> str:
        """The one character that an escape stands for."""
        if character in _ESCAPED:
            return _ESCAPED[character]
        if character == "x":
            return self._hexadecimal()
        if character in _OCTAL and (character == "0" or (self._peek() and self._peek() in _OCTAL)):
            digits = character
            while len(digits) < 3 and self._peek() and self._peek() in _OCTAL:
                digits += self._next()
            return chr(int(digits, 8))
        if character.isascii() and not character.isalnum():
            return character
        raise self._error(f"\\{character} is not supported")

    def _hexadecimal(self) -> str:
        if self._peek() == "{":
            self._position += 1
            digits = self._until("}", "a character's number does not end")
        else:
            digits = self._next() + self._next()
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError) as error:
            raise self._error(f"{digits!r} is no character's number") from error

    def _class(self) -> Takes:
        is_negated = self._peek() == "^"
        if is_negated:
            self._position += 1
        parts: list[Takes] = []
        while not parts or self._peek() != "]":
            if not self._peek():
                raise self._error("a class is not closed")
            parts.append(self._class_part())
        self._position += 1
        found = self._folded(any_of(parts))
        return negated(found) if is_negated else found

    def _class_part(self) -> Takes:
        if self._starts("[:") and ":]" in self._text[self._position + 2 :]:
            self._position += 2
            name = self._until(":]", "")
            found = POSIX.get(name.removeprefix("^"))
            if found is None:
                raise self._error(f"there is no class {name!r}")
            return negated(found) if name.startswith("^") else found
        character = self._next()
        if character == "\\":
            character = self._next()
            known = self._escaped_class(character)
            if known is not None:
                return known
            character = self._escaped(character)
        if self._peek() != "-" or self._peek(1) in ("]", ""):
            return among(character)
        self._position += 1
        last = self._next()
        if last == "\\":
            last = self._escaped(self._next())
        if last < character:
            raise self._error(f"{character}-{last} is no range")
        return between(character, last)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (text == "0" or not text.startswith("0"))
