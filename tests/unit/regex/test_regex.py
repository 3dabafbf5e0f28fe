"""Expressions in RE2's syntax: what they match, what is refused, and that none of them is expensive."""

import pytest

from ottla.regex import RegexError, compile_regex
from ottla.regex.automaton import MAX_KEPT, MAX_STATES

NAME = "a" * 249


@pytest.mark.parametrize(
    ("regex", "matching", "others"),
    [
        ("orders", ["orders"], ["orders2", "order", "my-orders"]),
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        (r"orders\.(eu|us)", ["orders.eu", "orders.us"], ["orders-eu", "orders."]),
        ("[a-c]{2,3}", ["ab", "abc"], ["a", "abca", "ad"]),
        ("[^._-]+", ["abc9"], ["a_b", "a.b", ""]),
        ("(?i)ORDERS", ["orders", "Orders"], ["order"]),
        ("(?:a|b)+c?", ["ab", "abbac"], ["c", "abcc"]),
        (r"\w+\b-\b\d+", ["ab-1"], ["ab-", "-1", "ab--1"]),
        (r"^a.*z$", ["az", "abz"], ["za", "azb"]),
        (r"\Qa.b\E", ["a.b"], ["axb"]),
        ("x{0}y*", ["", "yy"], ["x"]),
        ("[[:alpha:]]+[[:digit:]]", ["ab1"], ["1", "ab"]),
        ("a{,2}", [], ["a", "aa"]),
        ("ü|a", ["a", "ü"], ["u", "Ü"]),
        ("(?i)ü", ["ü", "Ü"], ["u"]),
        ("a.b", ["a b", "aüb"], ["a\nb"]),
        ("(?s)a.b", ["a b", "a\nb"], ["ab"]),
        (r"(?m)a$\n^b", ["a\nb"], ["ab"]),
        (r"a$\n^b", [], ["a\nb"]),
        (r"\s\S", [" a", "\ta"], ["aa", "  "]),
        (r"\pL\p{Greek}\P{Lu}", ["aλb", "жωa"], ["aab", "aλB"]),
    ],
)
def test_what_matches(regex: str, matching: list[str], others: list[str]) -> None:
    matcher = compile_regex(regex)
    assert [name for name in [*matching, *others] if matcher.matches(name)] == matching


SYNTAX = ["(", ")", "*", "a**", "a+*", "[", "[z-a]", "a{3,2}", "a{1001}", "\\", r"\1", r"\y", r"\p{Klingon}"]
GROUPS = ["(?=a)", "(?<!a)", "(?P<n>a)(?P<n>b)", "(" * 101 + ")" * 101]
TOO_LARGE = ["a" * 10_001, "(a{1000}){3}", "((((x{0}){1000}){1000}){1000})"]


@pytest.mark.parametrize("regex", [*SYNTAX, *GROUPS, *TOO_LARGE], ids=lambda regex: regex[:16])
def test_what_is_refused(regex: str) -> None:
    with pytest.raises(RegexError):
        compile_regex(regex)


@pytest.mark.parametrize("regex", ["(a+)+b", "(a|a)*b", "(a*)*b", "(a?){200}a{200}b", "(.*.*.*)*b"])
def test_no_name_costs_more_than_its_length_times_the_size_of_the_expression(regex: str) -> None:
    matcher = compile_regex(regex)
    assert not matcher.matches(NAME)
    assert matcher.effort <= 2 * len(NAME) * MAX_STATES
    first = matcher.effort
    assert not matcher.matches(NAME)
    assert matcher.effort == first, "what was worked out once is kept"


def test_a_match_that_takes_long_pauses() -> None:
    work = compile_regex("(a?){200}a{200}b").match(NAME)
    assert sum(1 for _ in work) > 10


def test_what_is_kept_is_bounded() -> None:
    matcher = compile_regex("(a|b)*a(a|b){12}")
    for number in range(3_000):
        matcher.matches(f"{number:016b}".replace("0", "a").replace("1", "b"))
    assert max(len(matcher._reached), len(matcher._moved)) <= MAX_KEPT
