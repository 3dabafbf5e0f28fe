"""Classes of characters: each is a question that a character answers with yes or no."""

import string
import unicodedata
from collections.abc import Callable, Sequence

Takes = Callable[[str], bool]


def among(characters: str) -> Takes:
    return frozenset(characters).__contains__


def between(first: str, last: str) -> Takes:
    return lambda character: first <= character <= last


def anything(character: str) -> bool:
    return True


def negated(takes: Takes) -> Takes:
    return lambda character: not takes(character)


def any_of(several: Sequence[Takes]) -> Takes:
    return several[0] if len(several) == 1 else lambda character: any(takes(character) for takes in several)


def in_any_case(takes: Takes) -> Takes:
    def takes_a_form(character: str) -> bool:
        forms = (character, character.lower(), character.upper())
        return any(takes(form) for form in forms if len(form) == 1)

    return takes_a_form


_digit = among(string.digits)
_space = among("\t\n\f\r ")
is_word = among(string.ascii_letters + string.digits + "_")

PERL: dict[str, Takes] = {
    "d": _digit,
    "D": negated(_digit),
    "s": _space,
    "S": negated(_space),
    "w": is_word,
    "W": negated(is_word),
}
POSIX: dict[str, Takes] = {
    "alnum": among(string.ascii_letters + string.digits),
    "alpha": among(string.ascii_letters),
    "ascii": str.isascii,
    "blank": among("\t "),
    "cntrl": among("".join(map(chr, range(32))) + "\x7f"),
    "digit": _digit,
    "graph": between("!", "~"),
    "lower": among(string.ascii_lowercase),
    "print": between(" ", "~"),
    "punct": among(string.punctuation),
    "space": among("\t\n\v\f\r "),
    "upper": among(string.ascii_uppercase),
    "word": is_word,
    "xdigit": among(string.hexdigits),
}
_CATEGORIES = {
    "C": "cfos",
    "L": "lmotu",
    "M": "cen",
    "N": "dlo",
    "P": "cdefios",
    "S": "ckmo",
    "Z": "lps",
}
_SCRIPTS = (
    "Latin",
    "Greek",
    "Cyrillic",
    "Han",
    "Arabic",
    "Hebrew",
    "Hiragana",
    "Katakana",
    "Hangul",
    "Thai",
    "Devanagari",
)
_FIRST_WORDS = {"Han": "CJK"}


def _of_category(category: str) -> Takes:
    return lambda character: unicodedata.category(character).startswith(category)


def _of_script(script: str) -> Takes:
    """By the first word of a character's name: Python does not know scripts."""
    first_word = _FIRST_WORDS.get(script, script.upper()) + " "
    return lambda character: unicodedata.name(character, "").startswith(first_word) and character.isalpha()


UNICODE: dict[str, Takes] = {
    **{category: _of_category(category) for category in _CATEGORIES},
    **{first + second: _of_category(first + second) for first, rest in _CATEGORIES.items() for second in rest},
    **{script: _of_script(script) for script in _SCRIPTS},
    "Any": anything,
    "Common": negated(any_of([_of_category("L"), _of_category("M")])),
}
