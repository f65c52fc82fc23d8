"""How patterns are written, and what is none."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.registry.patterns import FORMS, Literal, PatternError, Values, literal_text, read_pattern

COLON = (b":",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not empty"),
        ("user:{id", "written twice"),
        ("user:id}", "written twice"),
        ("user:{}", "no placeholder"),
        ("user:{a<id>}}", "written twice"),
        ("user:{a<id>", "written twice"),
        ("user:{user id}", "no placeholder"),
        ("user:<a><b>", "nothing says where <a> ends"),
        ("user:<a>:<a>", "twice"),
        ("<**>:x:<**>", "only one placeholder"),
        ("<a>_<b>_<c>_<d>", "3 placeholders"),
        ("user\\q", "no escape"),
    ],
)
def test_what_is_no_pattern_says_why(text: str, why: str) -> None:
    with pytest.raises(PatternError, match=re.escape(why)):
        read_pattern(text, {}, COLON)


def test_text_that_ends_with_a_part_of_a_separator_is_refused() -> None:
    with pytest.raises(PatternError, match="part of a separator"):
        read_pattern("x:<a>", {}, (b"::",))
    assert read_pattern("x:<a>", {}, COLON).matches(b"x:1")


def test_escapes_are_bytes() -> None:
    pattern = read_pattern(r"<queue>\x06\x16<priority>", {}, COLON)
    assert pattern.fields(b"celery\x06\x163") == {"queue": b"celery", "priority": b"3"}
    assert read_pattern('"a"', {}, COLON).matches(b'"a"')
    assert read_pattern("stra\u00dfe:<id>", {}, COLON).matches("straße:1".encode())


def test_placeholders_have_the_form_of_their_name_unless_it_is_said() -> None:
    assert not read_pattern("<int>", {}, COLON).matches(b"x")
    assert read_pattern("<int>", {"int": Values()}, COLON).matches(b"x")


@pytest.mark.parametrize(
    ("old", "text", "key"),
    [
        ("user:{id}", "user:<id>", b"user:7"),
        ("{**}:{*}", "<**>:<*>", b"a:b:c"),
        ("{{user{id}}}.following", "{user<id>}.following", b"{user7}.following"),
        ("a:{{{tag}}}:{{x}}", "a:{<tag>}:{{x}}", b"a:{7}:{x}"),
        ("{{{{{id}}}}}", "{{{{<id>}}}}", b"{{7}}"),
        (r"\x3cid>:{id}", r"\x3cid>:<id>", b"<id>:7"),
        ("<<{id}>", "<<<id>>", b"<<7>"),
        ("{{<{id}x>}}", "{<<id>x>}", b"{<7x>}"),
    ],
)
def test_a_pattern_with_braces_is_one_with_angle_brackets(old: str, text: str, key: bytes) -> None:
    before, now = read_pattern(old, {}, COLON), read_pattern(text, {}, COLON)
    assert before == now
    assert now.text == text
    assert now.matches(key)
    assert not now.matches(key.replace(b"7", b"").replace(b"a:b:c", b""))


_TEXTS = st.lists(st.sampled_from(["<", ">", "{", "}", "id", "*", "a", "7", "<id>", "{id}", "\\", '"']), min_size=1)


@given(_TEXTS.map("".join))
def test_any_text_of_a_key_can_be_written_and_stands_for_itself_only(text: str) -> None:
    written = literal_text(text.replace("\\", "\\\\").replace('"', '\\"'))
    pattern = read_pattern(f"{written}:<id>", {}, COLON)
    assert next(part for segment in pattern.segments for part in segment.parts) == Literal(text.encode())
    assert read_pattern(pattern.text, {}, COLON) == pattern


def test_a_pattern_has_its_own_samples() -> None:
    for form in FORMS:
        pattern = read_pattern(f"a:{{{form}}}:b" if form != "any-depth" else "a:<**>:b", {}, COLON)
        assert pattern.matches(pattern.sample())


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_every_address_is_one(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    pattern = read_pattern("rate:<ip>", {}, COLON)
    assert pattern.fields(f"rate:{address}".encode()) == {"ip": str(address).encode()}
    assert pattern.matches(f"rate:{address.exploded}".encode())


@given(st.text("0123456789abcdef:.", max_size=24))
def test_nothing_else_is_an_address(text: str) -> None:
    try:
        ipaddress.ip_address(text)
        is_one = True
    except ValueError:
        is_one = False
    assert read_pattern("<ip>", {}, COLON).matches(text.encode()) == is_one


def test_a_placeholder_of_fixed_length() -> None:
    values = {"hash": Values(FORMS["hex"], lengths=((32, 32), (64, 64)))}
    pattern = read_pattern("page:<hash>", values, COLON)
    assert pattern.matches(b"page:" + b"a" * 32)
    assert pattern.matches(b"page:" + b"a" * 64)
    assert not pattern.matches(b"page:" + b"a" * 33)
