"""Errors of Spark's as people want to read them."""


def first_line(text: str) -> str:
    """The line that says what went wrong, without the traces of a JVM below it."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
