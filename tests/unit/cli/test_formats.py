"""Format strings, token by token."""

import pytest

from ottla.cli.formats import WrongFormat, compile_format, unescape
from ottla.client.consumer._twin import Record

RECORD = Record("orders", 3, 42, 1767225600000, key=b"k\xff", value=b"tea", headers=(("a", b"1"), ("b", None)))
NULLS: Record[bytes, bytes] = Record("orders", 0, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"%t [%p] at %o\n", b"orders [3] at 42\n"),
        (r"%k\t%s\n", b"k\xff\ttea\n"),
        ("%K %S", b"2 3"),
        ("%R", b"\x00\x00\x00\x03"),
        ("%T", b"1767225600000"),
        ("%h", b"a=1,b=NULL"),
        ("100%% %s", b"100% tea"),
        (r"\x41\x42\\n\0", b"AB\\n\0"),
        ("čaj", "čaj".encode()),
        ("", b""),
        ("\udcff%s", b"\xfftea"),
    ],
)
def test_tokens(text: str, expected: bytes) -> None:
    assert compile_format(text)(RECORD) == expected


def test_nulls_are_empty_unless_told_otherwise_and_have_no_length() -> None:
    assert compile_format("%k|%s|%K|%S|%h|%R")(NULLS) == b"||-1|-1||\xff\xff\xff\xff"
    assert compile_format("%k|%s", b"NULL")(NULLS) == b"NULL|NULL"


@pytest.mark.parametrize(("text", "named"), [("%q", "%q"), ("50%", "%"), (r"\q", r"\q")])
def test_what_is_no_token_is_named(text: str, named: str) -> None:
    with pytest.raises(WrongFormat, match="is no") as raised:
        compile_format(text)
    assert named in str(raised.value)


@pytest.mark.parametrize(("text", "expected"), [(r"\t", b"\t"), (r"\x1f", b"\x1f"), (": ", b": "), (r"a\\b", b"a\\b")])
def test_delimiters_are_unescaped(text: str, expected: bytes) -> None:
    assert unescape(text) == expected


def test_a_wrong_delimiter() -> None:
    with pytest.raises(WrongFormat):
        unescape(r"\q")
