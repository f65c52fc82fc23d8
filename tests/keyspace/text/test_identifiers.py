"""Identifiers are told from names by their form; names that Java has serialised are split, shown and turned back."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.analysis.query.deciding import NameFilter
from rtui.analysis.query.parsing import parse
from rtui.analysis.query.plan import plan_of
from rtui.keyspace.rows.rows import RowKind, VisibleRows
from rtui.keyspace.slices import finish
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.packed_names import Chunk, SplitNames, pack_inline
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import Display, display
from rtui.keyspace.text.glob import GlobMatcher, namespace_pattern
from rtui.keyspace.text.identifiers import DIGITS, LONGEST, MARKS, Form, Identifiers, KeySegments
from rtui.keyspace.text.segments import HEADER, MARK, Separators, java_text, raw_java_name, swapped
from tests.conftest import examples, known

KNOWN = Identifiers()

FOLDED = {
    b"18": b"<id>",
    b"0": b"<id>",
    b"00000000000000000018": b"<id>",
    b"R20260000000001": b"<id>",
    b"P00012345678": b"<id>",
    b"sku-000123": b"sku-<n>",
    b"PAY-04F3A1B2C9": b"PAY-<hash>",
    b"task-meta-550e8400-e29b-41d4-a716-446655440000": b"task-meta-<uuid>",
    b"page..GET.d41d8cd98f00b204.abcd123456.en-us": b"page..GET.<hash>.<hash>.en-us",
    b"login_2026-02-01": b"login_<date>",
    b"from-10.0.0.255_7": b"from-<ip>_<n>",
    b"order_1234567_v2": b"order_<n>_v2",
    b"{sku-000123}": b"{sku-<n>}",
    b"2001:db8::1a2b": b"<ip>",
    b"1:2:3:4:5:6:7:8a": b"<ip>",
    b"dGhlIHNhbXBsZSBub25jZQ==": b"<id>",
    b"01ARZ3NDEKTSV4RRFFQ69G5FAV": b"<id>",
    b"V1StGXR8_Z5jdHi6B-myT": b"<id>",
    b"550e8400-e29b-41d4-a716-446655440000": b"<uuid>",
    b"550E8400-E29B-41D4-A716-446655440000": b"<uuid>",
    b"d41d8cd98f00b204e9800998ecf8427e": b"<hash>",
    b"507f1f77bcf86cd799439011": b"<hash>",
    b"abcd123456": b"<hash>",
    b"2026-02-01": b"<date>",
    b"2026-02": b"<date>",
    b"20260201T101112Z": b"<date>",
    b"10.0.0.255": b"<ip>",
    b"guest42@example.com": b"<email>",
    b"{user:1}": b"{user:<id>}",
    b"search" + b"6b86b273" * 8: b"search<hash>",
    b"sessions.cache" + b"9dd4e461" * 4: b"sessions.cache<hash>",
    b"decade" + b"9dd4e461" * 5: b"<hash>",
    b"{42}": b"{<id>}",
    b"{42}.following": b"{<id>}.following",
    b"{eu:550e8400-e29b-41d4-a716-446655440000}": b"{eu:<uuid>}",
    b"{2001:db8::7:login}.x": b"{<ip>:login}.x",
    b"view//product/7": b"view//product/<n>",
    b"7/view": b"<n>/view",
    b"0ujsswThIGTUYm2K8FjOOfXtY1K": b"<id>",
    b"Zk1+x8Qf2/LmR7tVb0Yc": b"<id>",
    b"ann@example.xn--p1ai": b"<email>",
    b"ce-02-dc-34-3e-bb": b"<id>",
    b"Xpw2Oe-3_BmaSPnyPfw0vjfe_CZlQ_BxCXrIer8ODOU": b"<id>",
}
"""Segments that are identifiers."""

NUMBERED = {
    b"user42": b"user<n>",
    b"v2": b"v<n>",
    b"page_7": b"page_<n>",
    b"user-42": b"user-<n>",
    b"v1.user.42": b"v1.user.<n>",
    b"img/7.png": b"img/<n>.png",
    b"shard3_user_42": b"shard3_user_<n>",
    b"a1_b2": b"a<n>_b<n>",
    b"rank_daily_7": b"rank_daily_<n>",
    b"1.5": b"<n>.<n>",
    b"x9Kd2": None,
    b"3d": None,
    b"{page_7}": b"{page_<n>}",
    b"{user42}.cart": b"{user<n>}.cart",
    b"img/7.svg": b"img/<n>.svg",
    b"Images/Photo1/LargeVersion": b"Images/Photo<n>/LargeVersion",
    b"feed::42": b"feed::<n>",
    b"profile": None,
}
"""Names, and what they fold to where very many differ in their numbers only."""

NAMES = (
    b"", b"UID", b"userProfile", b"user42", b"v2", b"page_7", b"user_42", b"cafe", b"deadbeef",
    b"createPreLoanStageHandler", b"create_pre_loan_stage_handler", b"handholdIdCardInfo", b"-1", b"1.5", b"{user}",
    b"{}", b"{user42}.followers", b"\xff\x00", b"0" * 257, b"two words 12", b"AbcdefGhijklMnopqrstUvwxyz",
    b"createPreLoanStageHandlerV2", b"UserHTTP2ConnectionPool", b"My-Order-Service-V2-Ab", b"maxRetryCountV2=",
    b"i18n/Messages/EnglishUK23",
)  # fmt: skip
"""Segments that are not."""

FORMS = (
    st.integers(0, 10**12).map(lambda number: b"%d" % number)
    | st.uuids().map(lambda one: str(one).encode())
    | st.binary(min_size=1, max_size=4).map(lambda raw: hashlib.md5(raw, usedforsecurity=False).hexdigest().encode())
    | st.from_regex(rb"\A[0-9]{1,3}(\.[0-9]{1,3}){3}\Z")
    | st.from_regex(rb"\A[a-fA-F0-9]{6,12}\Z")
    | st.from_regex(rb"\A[A-Z]{1,4}-?[0-9]{6,8}\Z")
    | st.from_regex(rb"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
    | st.from_regex(rb"\A[a-z]{1,3}[_.-][a-f0-9]{1,9}([_.-][0-9]{1,7})?\Z")
    | st.from_regex(rb"\A[0-9f][0-9a-e]{3}:(:?[0-9a-f]{1,4}){1,8}\Z")
)
"""Identifiers and what looks like them."""

PARTS = FORMS | st.sampled_from((b"", b"user", b"v2", b"v3", b"user42", b"{", b"}", b"{1}", b"\1", b"\2", b"\3", b"\0"))

KEYS = st.lists(st.tuples(PARTS, st.sampled_from((b":", b":", b"{", b"}", b""))), min_size=1, max_size=6).map(
    lambda parts: b"".join(name + separator for name, separator in parts)
)
"""Keys full of identifiers, hash tags and what might confuse."""


@pytest.mark.parametrize("segment", FOLDED)
def test_an_identifier_folds(segment: bytes) -> None:
    assert KNOWN.form(segment).pattern == FOLDED[segment]


@pytest.mark.parametrize("segment", NUMBERED)
def test_a_name_with_a_number_folds_among_many(segment: bytes) -> None:
    form = KNOWN.form(segment)
    assert (form.pattern, form.numbered) == (None, NUMBERED[segment])


@pytest.mark.parametrize("segment", NAMES)
def test_a_name_stays(segment: bytes) -> None:
    assert KNOWN.form(segment).pattern is None


@given(st.uuids())
def test_every_uuid_is_one(one: uuid.UUID) -> None:
    assert KNOWN.form(str(one).encode()).pattern == b"<uuid>"


@given(st.integers(min_value=0))
def test_every_number_is_an_id(number: int) -> None:
    assert KNOWN.form(b"%d" % number).pattern == (b"<id>" if len(str(number)) <= 256 else None)


@given(st.binary(max_size=300))
def test_any_bytes_have_a_form(segment: bytes) -> None:
    form = KNOWN.form(segment)
    assert form.likeness in range(4)
    assert form.pattern != segment


def pattern(
    key: bytes, separators: tuple[bytes, ...], *, among_many: bool = False
) -> tuple[list[tuple[bytes, bool, bytes]], int]:
    """The pattern of a key, segment by segment, and what all of its forms allow."""
    identifiers = Identifiers(separators)
    likeness = DIGITS | MARKS
    found = []
    segments = KeySegments(Separators(separators))
    likeness = 0 if segments.may_have_whole(key) else likeness
    for name, separator in segments.of(key, 1_000):
        form = identifiers.form(name)
        if among_many and form.numbered is not None:
            form = Form(form.numbered, form.numbered_likeness)
        likeness &= form.likeness
        found.append((name if form.pattern is None else form.pattern, form.pattern is None, separator))
    return found, likeness


_END: Final = b"\0"
_UUID_MARK, _HASH_MARK, _ID_MARK = b"\1", b"\2", b"\3"
_SPECIAL: Final = re.compile(b"[\1\2\3]").search
_NO_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_HEX: Final = b"[0-9a-fA-F]"
_NOT_OF_IDENTIFIERS: Final = re.sub(b"[0-9a-fA-F-]", b"", bytes(range(256)))
"""All bytes that numbers, hashes and UUIDs do not contain: any other separator may cut an identifier."""


class Shapes:
    """Computes the shapes of keys in a keyspace with these separators, all keys of a page joined into one string.

    A separator that may be part of an identifier cuts it: with the separator `-` there are no UUIDs.
    """

    def __init__(self, separators: Sequence[bytes]) -> None:
        of_identifiers = b"".join(separators).translate(None, _NOT_OF_IDENTIFIERS)
        self._may_translate = re.search(rb"[0-9]", of_identifiers) is None
        self._can_mark = all(len(separator) == 1 for separator in separators) and of_identifiers in (b"", b"-")
        self._has_uuids = b"-" not in of_identifiers
        segment_border = b"[\\0{}" + b"".join(map(re.escape, separators)) + b"]"
        word_border = b"[^0-9A-Za-z]"

        def part(border: bytes, first: bytes, form: bytes) -> re.Pattern[bytes]:
            """Return the pattern of a whole part between borders that begins with one of `first`."""
            return re.compile(first + b"(?<=" + border + first + b")" + form + b"(?=" + border + b")")

        self._uuid = part(word_border, _HEX, _HEX + b"{7}-" + (_HEX + b"{4}-") * 3 + _HEX + b"{12}")
        self._hash = part(
            word_border,
            _HEX,
            rb"(?:(?<=[0-9])(?=[0-9]*[a-fA-F])|(?<=[a-fA-F])(?=[a-fA-F]*[0-9]))"
            rb"(?:(?<=[0-9a-f])[0-9a-f]{7,}|(?<=[0-9A-F])[0-9A-F]{7,})",
        )
        self._id = part(segment_border, b"[0-9]", b"[0-9]*")

    def of_digits(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the digit shape of each key: cheap, and enough if ids are digits of one length."""
        if not self._may_translate:
            return list(keys)
        shapes = _END.join(keys).translate(_NO_DIGITS).split(_END)
        return shapes if len(shapes) == len(keys) else [key.translate(_NO_DIGITS) for key in keys]

    def of_marks(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the mark shape of each key; None for all if one is too long or contains a byte used as a mark."""
        joined = b"\0%s\0" % _END.join(keys)
        if not self._can_mark or _SPECIAL(joined) or max(map(len, keys)) > LONGEST:
            return [None] * len(keys)
        if self._has_uuids and b"-" in joined:
            joined = self._uuid.sub(_UUID_MARK, joined)
        shapes = self._id.sub(_ID_MARK, self._hash.sub(_HASH_MARK, joined))[1:-1].split(_END)
        return shapes if len(shapes) == len(keys) else [None] * len(keys)


@given(
    st.lists(KEYS, min_size=2, max_size=30),
    st.sampled_from(((b":",), (b":", b"/"), (b"::",), (b"-",), (b".", b":"), (b"1",), ())),
    st.booleans(),
)
@example([b"u:b107a196-3281-4935-ad87-d7295a71b47c", b"u:35a9d1c5-0b82-4490-a3d2-4309df808e4b"], (b"-", b":"), False)
@example([b"page2b", b"page1b"], (b"1",), False)
@example([b"12345678e", b"12345678f"], (b"e",), False)
@example([b"r:1001:db8::1", b"r:2001:db8::1"], (b":",), False)
@example([b"a_1", b"a_2"], (b":",), True)
def test_keys_of_one_shape_have_one_pattern(keys: list[bytes], separators: tuple[bytes, ...], among_many: bool) -> None:
    shapes = Shapes(separators)
    by_digits: dict[bytes, object] = {}
    by_marks: dict[bytes, object] = {}
    for key, digits, marks in zip(keys, shapes.of_digits(keys), shapes.of_marks(keys), strict=True):
        found, likeness = pattern(key, separators, among_many=among_many)
        if digits in by_digits:
            assert by_digits[digits] == found
        if marks in by_marks:
            assert by_marks[marks] == found
        if likeness & DIGITS:
            by_digits[digits] = found
        if likeness & MARKS and marks is not None:
            by_marks[marks] = found


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.lists(st.tuples(FORMS, FORMS), min_size=20, max_size=40))
def test_marks_leave_nothing_of_common_identifiers(pairs: list[tuple[bytes, bytes]]) -> None:
    keys = [b"shop:user:%s:cart:%s" % pair for pair in pairs]
    marked = Shapes((b":",)).of_marks(keys)
    for key, shape in zip(keys, marked, strict=True):
        found, likeness = pattern(key, (b":",))
        if likeness & MARKS and any(not is_name for _, is_name, _ in found):
            assert len(known(shape)) < len(key) or min(map(len, key.split(b":"))) == 1


COLON = Separators((b":",))
LENGTH = st.sampled_from([b"\0\0", b"\0\1", b"\0\2", b"\0\3", b"\0\x3a", b"\xff:", b"\xff\xff"])
NEAR = st.tuples(LENGTH, st.binary(max_size=4) | st.sampled_from([b"x" * 58, b"x" * 65338, b"x" * 65535, b"x" * 65536]))
JAVA_NAMES = (
    st.binary(max_size=12)
    | st.text("ab:1{}", max_size=8).map(str.encode)
    | st.text("ab:1{}é", max_size=8).map(lambda one: raw_java_name(one.encode()) or b"")
    | NEAR.map(lambda one: HEADER + one[0] + one[1])
)


def java(text: str) -> bytes:
    return raw_java_name(text.encode()) or b""


@given(JAVA_NAMES, st.sampled_from([b":", b"/", b""]))
def test_swapping_twice_is_no_change(name: bytes, separator: bytes) -> None:
    other = swapped(name, separator)
    assert swapped(other, separator) == name
    assert len(other) == len(name)
    if separator and java_text(name) is not None:
        assert other == MARK + separator + name[7:]


@given(
    st.lists(JAVA_NAMES, unique=True, max_size=20), st.booleans(), st.sampled_from([(b":",), (b":", b"/"), (b"t",), ()])
)
def test_a_store_has_the_raw_names(names: list[bytes], is_split: bool, values: tuple[bytes, ...]) -> None:
    store = NamespaceStore(Separators(values))
    if is_split and values == (b":",):
        split = SplitNames(len(names), [], [], [], [])
        for name in names:
            head, found, rest = store.separators.split_first(name)
            inline = pack_inline([rest])
            if not found:
                split.flat.append(Chunk.of([name]))
            elif inline is not None:
                split.labels.append(head + found)
                split.inlines.append(inline)
            else:
                split.chunks.append((head + found, Chunk.of([rest])))
        store.add_split(split)
    else:
        store.add(names)
    assert store.keys == len(names)
    assert sorted(name for page in HeldNames(store).pages() for name in page) == sorted(names)
    rows = VisibleRows(store)
    finish(rows.expand_all(store.root))
    assert sorted(row.key() for row in rows.window(0, len(rows)) if row.kind is RowKind.KEY) == sorted(names)
    for name in names:
        row = known(finish(rows.reveal(name)))
        assert row.key() == name


def test_names_of_different_length_are_in_one_namespace() -> None:
    store = NamespaceStore()
    texts = ["user:cache:1", "user:cache:10", "user:cache:100"]
    store.add([*map(java, texts), *map(str.encode, texts)])
    rows = VisibleRows(store)
    finish(rows.expand_all(store.root))
    shown = [(row.depth, display(row.name)) for row in rows.window(0, len(rows))]
    below = [(1, "user"), (2, "cache"), (3, "1"), (3, "10"), (3, "100")]
    assert shown[:5] == [(depth - 1, name) for depth, name in below]
    assert shown[5:] == [(0, "⛾"), *below]


@given(JAVA_NAMES, st.integers(0, 5))
def test_segments_are_those_of_the_text(name: bytes, most: int) -> None:
    text, segments = java_text(name), KeySegments(COLON)
    if text is not None:
        expected = [(MARK, b":"), *segments.of(text, max(0, most - 1))][:most]
        assert list(segments.of(name, most)) == expected


@given(st.lists(JAVA_NAMES, unique=True, min_size=2, max_size=2))
@pytest.mark.parametrize("ascii_only", [False, True])
def test_names_look_different(ascii_only: bool, names: list[bytes]) -> None:
    one, other = (Display(ascii_only).name(name, limit=1 << 20) for name in names)
    assert one != other or any(name.startswith(MARK) for name in names)
    assert one.isascii() or not ascii_only


def test_how_a_name_is_shown() -> None:
    assert display(java("user:1")) == "⛾user:1"
    assert Display(ascii_only=True).name(java("user:1")) == "\\Juser:1"
    assert display("⛾user:1".encode()) == "\\u26feuser:1"
    assert Display(ascii_only=True).name(b"\\Juser:1") == "\\x5cJuser:1"
    assert display(HEADER + b"\0\4abc") == "\\xac\\xed␀␅t␀␄abc"
    assert display(java("user:" + "x" * 600), limit=20).startswith("⛾user:")


@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("user", True), ("user:1", True), ("user:*", True), ("*:1", True), ("in:user", True), ("in:⛾user", True),
        ("pattern:user:<id>", True), ("re:^user:1$", True), ("!user:*", False), ("t", False), ("in:users", False),
        ("⛾user:*", True),
    ],
)  # fmt: skip
def test_a_query_sees_the_text(line: str, passes: bool) -> None:
    query, name = parse(line), java("user:1")
    assert NameFilter(query, COLON).keep([name]) == [name][:passes]
    if passes:
        match = plan_of(query, COLON).server.match
        assert match is None or GlobMatcher(match)(name)
    is_marked = "⛾" in line
    assert NameFilter(query, COLON).keep([b"user:1"]) == [b"user:1"][: passes and not is_marked]


@given(st.lists(st.text("ab:?*[é", max_size=6), max_size=3))
def test_the_pattern_of_a_namespace_matches_its_keys(parts: list[str]) -> None:
    text = ":".join(parts).encode()
    assert GlobMatcher(namespace_pattern(MARK + b":" + text))(raw_java_name(text + b"key") or b"")
