from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.keyspace.text.display import EscapeSyntaxError, quoted, unescape


@given(st.binary())
def test_quoted_comes_back(raw: bytes) -> None:
    assert unescape(quoted(raw).encode()) == raw


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        (b"", b""),
        (b"plain:1", b"plain:1"),
        (rb"a\xfF\x00", b"a\xff\x00"),
        (rb"\n\r\t\a\b\\\"\'", b"\n\r\t\a\b\\\"'"),
        (rb"\u202e\U0001f600", "\u202e\U0001f600".encode()),
        (rb"\\x41", rb"\x41"),
        (b'"quoted"', b"quoted"),
        (b'"', b'"'),
        (b'"a', b'"a'),
        ("é\\x01".encode(), b"\xc3\xa9\x01"),
    ],
)
def test_escapes(text: bytes, raw: bytes) -> None:
    assert unescape(text) == raw


@pytest.mark.parametrize("text", [b"\\", b"a\\q", rb"\x4", rb"\xzz", rb"\u12", rb"\ud800", rb"\Uffffffff", b"\\\xff"])
def test_an_escape_that_stands_for_nothing_is_refused(text: bytes) -> None:
    with pytest.raises(EscapeSyntaxError, match="no escape"):
        unescape(text)
