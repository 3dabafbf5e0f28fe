"""Regular expressions in RE2's syntax, matched against whole names in linear time.

Clients choose the expressions, so no expression may cost more than its length times that of a name: there are no
backtracking and no backreferences, as in RE2, which is Kafka's.
"""

from ottla.regex.automaton import Matcher, compile_regex
from ottla.regex.syntax import RegexError

__all__ = ["Matcher", "RegexError", "compile_regex"]
