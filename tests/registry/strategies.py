"""Patterns and keys that hypothesis draws: few words and small alphabets, so that patterns meet."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from rtui.registry.patterns import (
    ANY_DEPTH,
    DATE,
    EMAIL,
    ENUM,
    HEX,
    INT,
    IP,
    MOST_PLACEHOLDERS,
    UUID,
    WORD,
    Literal,
    Pattern,
    Values,
    read_pattern,
)

SEPARATORS = ((b":",), (b":", b"/"), (b"-", b":"), (b"::",), (b".",), ())
"""Longest first."""

FORMS = (
    *(Values(),) * 3, Values(INT), Values(HEX), Values(HEX, lengths=((2, 2), (4, 5))), Values(UUID), Values(DATE),
    Values(IP), Values(EMAIL), Values(WORD), Values(ENUM, (b"a", b"ab", b"list")), Values(lengths=((1, 3),)),
    Values(ANY_DEPTH),
)  # fmt: skip

_WORDS = ("a", "ab", "list", "7", "x-", "-y", "_", "2026")
_SHAPES = ("w", "w", "p", "p", "wp", "pw", "wpw", "pwp", "wpwpw", "")
"""How a segment is made of words and placeholders."""


@st.composite
def patterns(draw: st.DrawFn, separators: Sequence[bytes]) -> Pattern:
    text, values = "", dict[str, Values]()
    forms = st.sampled_from(FORMS)
    for at, shape in enumerate(draw(st.lists(st.sampled_from(_SHAPES), min_size=1, max_size=4))):
        text += draw(st.sampled_from(separators)).decode() if at and separators else ""
        for kind in shape:
            if kind == "w" or (not separators and (text.endswith("}") or len(values) == MOST_PLACEHOLDERS)):
                text += draw(st.sampled_from(_WORDS))
                continue
            form = draw(forms)
            is_second = form.form is ANY_DEPTH and any(one.form is ANY_DEPTH for one in values.values())
            name = f"p{len(values)}"
            values[name] = Values() if is_second else form
            text += f"{{{name}}}"
    return read_pattern(text or "a", values, separators)


def naive(pattern: Pattern) -> re.Pattern[bytes]:
    """The plain expression of a pattern: without anything that makes it fast."""
    found = b""
    for segment in pattern.segments:
        for part in segment.parts:
            if isinstance(part, Literal):
                found += re.escape(part.text)
            else:
                found += b"(?:" + part.values.expression(pattern.separators) + b")"
        found += re.escape(segment.separator)
    return re.compile(found)


@st.composite
def keys_of(draw: st.DrawFn, pattern: Pattern) -> bytes:
    """A key of a pattern, or one that is nearly so."""
    found = b""
    for segment in pattern.segments:
        for part in segment.parts:
            if isinstance(part, Literal):
                found += part.text
            else:
                found += draw(st.sampled_from((*part.values.samples(), b"a", b"list", b"7")))
        found += segment.separator
    if draw(st.booleans()):
        return found
    at = draw(st.integers(0, len(found)))
    return (
        found[:at]
        + draw(st.sampled_from((b"", b":", b"-", b"a", b"7", b"\xff", b"{", b"\n")))
        + found[at + draw(st.integers(0, 2)) :]
    )


def keys() -> st.SearchStrategy[bytes]:
    """Any key over a small alphabet."""
    return st.lists(
        st.sampled_from((b"a", b"ab", b"list", b"7", b":", b"-", b"/", b".", b"_", b"x", b"\n", b"\xe9")), max_size=9
    ).map(b"".join)
