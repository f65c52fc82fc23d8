"""Stand-ins: of the same form, the same for the same name, and none of what they stand for."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.identifiers import Identifiers
from rtui.server.recording.stand_ins import StandIns

NAMES = st.one_of(
    st.text(st.sampled_from("abcdeXYZ0123456789:{}.-_/"), max_size=40).map(str.encode),
    st.binary(max_size=24),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.uuids().map(lambda one: f"session:{one}".encode()),
    st.from_regex(rb"[0-9a-f]{8,40}", fullmatch=True),
    st.from_regex(rb"[0-7][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True),
    st.sampled_from([b"10.0.0.1", b"2024-01-31", b"user@example.org", b"AB-123456", b"\xff\xfe:\x1b[2J"]),
)


@given(st.lists(NAMES, unique=True, max_size=30))
def test_different_names_have_different_stand_ins(names: list[bytes]) -> None:
    stand_ins = StandIns()
    found = [stand_ins.name(name) for name in names]
    assert len(set(found)) == len(names)
    assert found == [stand_ins.name(name) for name in names]


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_separators_lengths_and_kinds_of_characters_stay(text: str) -> None:
    other = StandIns().text(text)
    assert len(other) == len(text)
    for before, after in zip(text, other, strict=True):
        if before.isalnum():
            assert before != after
            assert (before.isdigit(), before.islower()) == (after.isdigit(), after.islower())
        else:
            assert before == after


@given(NAMES)
@example(b"\0A000000")
@example(b"3f2504e0-4f89-11d3-9a0c-0305e82c3301")
@example(b"01ARZ3NDEKTSV4RRFFQ69G5FAV")
def test_an_identifier_stays_one_of_its_form(name: bytes) -> None:
    form = Identifiers().form
    segments = [part for part in re.split(b"[:{}]", name) if part.isascii()]
    for part in segments:
        pattern = form(part).pattern
        if pattern is not None and pattern != b"{id}":
            assert placeholders(form(StandIns().name(part)).pattern) == placeholders(pattern)


def placeholders(pattern: bytes | None) -> list[bytes]:
    """What stands for identifiers in a pattern; the words beside them are private."""
    return re.findall(rb"\{[a-z]+\}", pattern or b"")


@given(st.text(st.sampled_from("abcxyz019"), min_size=1, max_size=7), st.text(st.sampled_from("abc09"), max_size=6))
def test_what_begins_alike_still_does(prefix: str, rest: str) -> None:
    stand_ins = StandIns()
    assert stand_ins.text(prefix + rest).startswith(stand_ins.text(prefix)) or len(prefix + rest) >= 8
    assert stand_ins.text(f"a:{prefix}*") == stand_ins.text("a:") + stand_ins.text(prefix) + "*"


@given(st.text(st.sampled_from("abc123:"), min_size=1), st.text(st.sampled_from("abc123:")), st.text(max_size=5))
def test_keys_of_one_hash_tag_keep_one(tag: str, before: str, after: str) -> None:
    stand_ins = StandIns()
    keys = [f"{before}{{{tag}}}", f"{before}x:{{{tag}}}:{after}"]
    slots = {key_slot(stand_ins.name(key.encode("utf-8", "surrogatepass"))) for key in keys}
    assert len(slots) == 1


def test_another_recording_has_other_stand_ins() -> None:
    name = b"a-name-of-some-length"
    assert StandIns().name(name) != StandIns().name(name)
