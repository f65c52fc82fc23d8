"""The segments and patterns of a column of names: exact, bounded, the same in any order and grouping of the keys."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.keyspace.text.identifiers import LONGEST, Form, Identifiers, KeySegments, NodeKind
from rtui.keyspace.text.segments import Separators, raw_java_name
from rtui.table.pattern_nodes import MOST_HASHES, MOST_NAMES, MOST_NUMBERED_KEYS, NodeIndex, PatternNodes
from rtui.table.patterns import Forms, Patterns
from rtui.table.schema import names_of
from rtui.table.segments import LONGEST_NAME, SegmentKind, SegmentSplitter, name_hashes
from tests.conftest import examples
from tests.grammar import WORDS, Grammar

COLON = Separators()

PART = st.one_of(
    st.sampled_from(
        ["", "a", "b", "user", "page_7", "page_8", "7", "123456", "{a:b}", "{1}", "2001:db8::1", "10.0.0.1"]
    ),
    st.sampled_from(["550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204", "2024-01-02", "x@example.com", "é"]),
    st.text("ab01:{}-./", max_size=5),
)
KEY = st.one_of(
    st.lists(PART, min_size=1, max_size=4).map(lambda parts: ":".join(parts).encode()), st.binary(max_size=12)
)
KEYS = st.lists(KEY, max_size=40)
SEPARATORS = st.sampled_from([(b":",), (b":", b"/"), (b"-",), (b".", b"-"), (b"::", b":"), (), (b"ab", b"ba"), (b"{",)])


def table(keys: Iterable[bytes]) -> pl.DataFrame:
    return pl.DataFrame(list(names_of(list(keys))))


def placed(keys: Sequence[bytes], separators: Separators = COLON, chunk: int = 1_000, **more: int) -> Patterns:
    patterns = Patterns(separators, **more)
    for first in range(0, len(keys), chunk):
        patterns.place(table(keys[first : first + chunk]))
    return patterns


def path(tree: PatternNodes, node: int) -> tuple[tuple[bytes, bytes, NodeKind], ...]:
    return () if node == 0 else (*path(tree, tree.parents[node]), tree.name(node))


def counts(tree: PatternNodes) -> dict[bytes, int]:
    """Keys that end at each node, by its whole pattern."""
    return {
        b"".join(segment + separator for segment, separator, _ in path(tree, node)): int(tree.keys[node])
        for node in tree.live()
        if tree.keys[node]
    }


def contents(tree: PatternNodes) -> dict[object, object]:
    """All that is known of a tree but the numbers of its nodes."""
    return {
        path(tree, node): (int(tree.keys[node]), int(tree.memory[node]), sorted(tree.distinct.of(node).tolist()))
        for node in tree.live()
    }


@settings(deadline=None)
@given(KEYS, SEPARATORS, st.randoms(), st.integers(1, 40), st.sampled_from([None, 0, 1, 2]))
def test_the_order_and_the_chunks_have_no_say(
    keys: list[bytes], separators: tuple[bytes, ...], rng: Random, chunk: int, depth: int | None
) -> None:
    splits = Separators(separators)
    whole = Patterns(splits, depth)
    whole.place(table(keys))
    other = Patterns(splits, depth)
    shuffled = rng.sample(keys, len(keys))
    for first in range(0, len(keys), chunk):
        other.place(table(shuffled[first : first + chunk]))
    assert contents(whole) == contents(other)
    assert whole.keys.sum() == len(keys)


@settings(deadline=None)
@given(st.tuples(KEYS, KEYS, KEYS), SEPARATORS)
def test_trees_merge_in_any_order_to_what_all_keys_together_are(
    parts: tuple[list[bytes], ...], separators: tuple[bytes, ...]
) -> None:
    splits = Separators(separators)

    def of(*which: int) -> Patterns:
        return placed([key for one in which for key in parts[one]], splits)

    left, right, crossed = of(0), of(2), of(1)
    left.merge(of(1))
    left.merge(of(2))
    right.merge(of(1))
    crossed.merge(right)  # holds part 1 twice
    assert contents(left) == contents(of(0, 1, 2))
    assert contents(crossed) == contents(of(1, 1, 2))


@settings(deadline=None)
@given(KEYS, KEYS, SEPARATORS)
def test_ids_stay_and_merged_ones_lead_to_where_their_keys_are(
    first: list[bytes], second: list[bytes], separators: tuple[bytes, ...]
) -> None:
    patterns = Patterns(Separators(separators))
    summed = np.zeros(0, np.int64)
    for keys in (first, second, first):
        more = np.bincount(patterns.place(table(keys)), minlength=len(patterns))
        summed = more + np.pad(summed, (0, len(more) - len(summed)))
        if keys is second:
            summed = np.bincount(patterns.fold(), summed, len(patterns)).astype(np.int64)
    moved = np.bincount(patterns.own(), summed, len(patterns)).astype(np.int64)
    assert moved.tolist() == patterns.keys.tolist()


def test_names_that_differ_in_a_number_become_one_where_they_are_many() -> None:
    for many in (MOST_NUMBERED_KEYS, MOST_NUMBERED_KEYS + 1):
        keys = [b"page_%d" % number for number in range(many)] + [b"x:page_%d:y" % number for number in range(many)]
        found = counts(placed(Random(1).sample(keys, len(keys)), chunk=7))
        assert len(found) == (2 * many if many == MOST_NUMBERED_KEYS else 1 + many)
    assert found[b"page_<n>"] == many


def test_a_pattern_stands_for_all_names_that_were_merged_into_it() -> None:
    patterns = placed([b"page_%d" % number for number in range(200)] * 2, chunk=9)
    (pattern,) = (node for node in patterns.live() if patterns.segments[node] == b"page_<n>")
    assert len(patterns.distinct.of(pattern)) == 200
    patterns.place(table(b"page_%d" % number for number in range(5_000)))
    assert len(patterns.distinct.of(pattern)) == MOST_HASHES


@pytest.mark.parametrize("below", [b"", b":cart"])
def test_heavy_names_stay_and_light_ones_are_bounded(below: bytes) -> None:
    rng = Random(2)
    flood = ["".join(rng.choices("abcdefghijklmnop", k=9)).encode() + below for _ in range(20_000)]
    heavy = [b"giant:%d" % number for number in range(1_000)] + [b"large%s" % below] * 300
    for keys in (flood + heavy, heavy + flood, rng.sample(flood + heavy, len(flood + heavy))):
        patterns = placed(keys, chunk=3_000)
        assert patterns.size <= 2 * MOST_NAMES + 10
        assert int(patterns.keys.sum()) == len(keys)
        found = counts(patterns)
        assert found[b"giant:<id>"] == 1_000
        assert found[b"large%s" % below] >= 300 - len(keys) // 500
        assert found[b"<*>%s" % below] >= 17_000


@pytest.mark.parametrize("chunk", [7, 10_000])
def test_the_empty_name_is_never_lost(chunk: int) -> None:
    rng = Random(5)
    flood = [
        "".join(rng.choices("abcdefghijklmnop", k=9)).encode() + below for below in (b"", b":x") for _ in range(3_000)
    ]
    found = counts(placed(rng.sample([*flood, b":x", b":y:", b""], len(flood) + 3), chunk=chunk))
    assert {name: found.get(name) for name in (b":x", b":y:", b"")} == {b":x": 1, b":y:": 1, b"": 1}


def test_so_many_nodes_at_most() -> None:
    rng = Random(3)
    keys = [":".join(rng.choices(WORDS, k=4)).encode() for _ in range(20_000)]
    patterns = placed(keys, most=1_000)
    assert patterns.size <= 2 * 1_000
    assert patterns.keys.sum() == len(keys)
    assert len(patterns.fold()) >= len(patterns) == patterns.size
    assert patterns.keys.sum() == len(keys)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_segments_have_the_pattern_of_their_form(seed: int) -> None:
    keys = [name for _, name in Grammar(seed, 200).drawn(4_000)]
    patterns, identifiers = Patterns(COLON), Identifiers(COLON.values)
    nodes = patterns.place(table(keys))
    seen = Counter[bool]()
    for key, node in zip(keys, nodes, strict=True):
        first = path(patterns, node)[0]
        form = identifiers.form(next(COLON.segments(key)).name)
        if form.pattern is not None and b"::" not in key and key.count(b":") < 7:
            assert first[0] == form.pattern
        seen[form.pattern is not None] += 1
    assert len(seen) == 2


HIGHEST = (1 << 64) - 1

HASHES = st.lists(
    st.lists(st.one_of(st.integers(HIGHEST - 600, HIGHEST), st.integers(1, HIGHEST)), max_size=300), max_size=4
)


@given(HASHES)
def test_each_node_is_found_and_no_other(added: list[list[int]]) -> None:
    index, known = NodeIndex(), dict[int, int]()
    index.rebuild(np.empty(0, np.uint64), np.empty(0, np.int32))
    for some in added:
        new = {one: len(known) + at for at, one in enumerate(one for one in dict.fromkeys(some) if one not in known)}
        index.add(np.array([*new], np.uint64), np.array([*new.values()], np.int32))
        known |= new
        asked = [*known, *(one ^ 1 << 60 for one in known), HIGHEST - 700]
        assert index.find(np.array(asked, np.uint64)).tolist() == [known.get(one, -1) for one in asked]


ANY_PART = st.one_of(
    st.sampled_from(["", "a", "user", "page_7", "7", "{a:b}", "{1}", "2001:db8::1", "1:2:3:4:5:6:7:a", "10.0.0.1"]),
    st.sampled_from(["550e8400-e29b-41d4-a716-446655440000", "2024-01-02", "é", "{", "}", "{}", "x" * 300]),
    st.text("ab01:{}-./", max_size=6),
)
ANY_KEY = st.one_of(
    st.lists(ANY_PART, min_size=1, max_size=5).map(lambda parts: ":".join(parts).encode()),
    st.lists(ANY_PART, min_size=1, max_size=5).map(lambda parts: raw_java_name("-".join(parts).encode()) or b""),
    st.binary(max_size=12),
)
ANY_SEPARATORS = st.one_of(
    st.sampled_from([(b":",), (b":", b"/"), (b"-",), (b".", b"-"), (b"::", b":"), (b"{",), (b"\xff", b"\xed\xa0")]),
    st.lists(st.text("ab:{-.", min_size=1, max_size=3).map(str.encode), max_size=3).map(tuple),
)
WORD = st.one_of(
    st.text("0123456789", max_size=9),
    st.text("abcdef0123456789", max_size=40),
    st.text("ABCDEF0123456789-", max_size=40),
    st.text("abzABZ019_-.:{}=@+/ é", max_size=50),
    st.text("zaZ09", min_size=19, max_size=28),
    st.from_regex(r"[A-Za-z]{0,5}[0-9]{0,8}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", fullmatch=True),
    st.text(max_size=8),
)


@given(st.lists(ANY_KEY, max_size=12), ANY_SEPARATORS, st.sampled_from([0, 1, 2, 32]))
def test_each_name_has_the_segments_that_it_has_alone(
    keys: list[bytes], separators: tuple[bytes, ...], depth: int
) -> None:
    splits = Separators(separators)
    expected = [list(KeySegments(splits).of(key, depth)) for key in keys]
    found = SegmentSplitter(splits, depth).split(table(keys))
    values = (b"", *splits.values)
    for first, count, pairs in zip(found.first, found.counts, expected, strict=True):
        places = np.arange(first, first + count)
        assert found.texts(places) == [name for name, _ in pairs]
        assert [values[code] for code in found.separators[places]] == [separator for _, separator in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("separators", [(b":",), (b"-",), (b".", b"_"), (b"|", b"/")])
def test_names_of_the_grammar_in_many_blocks(separators: tuple[bytes, ...]) -> None:
    keys = [name for _, name in Grammar(5, 300).drawn(20_000)]
    keys[::1000] = [key + b":" * 40 + b"y" * 5_000 + b":z" for key in keys[::1000]]
    splits = Separators(separators)
    by_segment = KeySegments(splits)
    found = SegmentSplitter(splits, 32).split(table(keys))
    for key, first, count in zip(keys, found.first, found.counts, strict=True):
        names = found.texts(np.arange(first, first + count))
        expected = [name for name, _ in by_segment.of(key, 32)]
        if len(key) <= LONGEST_NAME:
            assert names == expected
        else:
            assert [name if len(name) <= LONGEST else b"" for name in expected] == [
                name if len(name) <= LONGEST else b"" for name in names
            ]


def told(segment: bytes, kind: SegmentKind, form: Form) -> bool:
    """Whether a kind says of a form what is so."""
    patterns = {SegmentKind.ID: b"<id>", SegmentKind.UUID: b"<uuid>", SegmentKind.HASH: b"<hash>"}
    match kind:
        case SegmentKind.UNSURE:
            return True
        case SegmentKind.LONG:
            return len(segment) > LONGEST
        case SegmentKind.NAME:
            return form.pattern is None and form.numbered is None
    return form.pattern == patterns[kind]


@given(st.lists(WORD.map(str.encode), min_size=1, max_size=50))
def test_kinds_say_nothing_that_forms_do_not(words: list[bytes]) -> None:
    identifiers = Identifiers(())
    found = SegmentSplitter(Separators(()), 32).split(table(words))
    for word, kind, coded in zip(words, found.kinds, found.is_coded, strict=True):
        assert told(word, SegmentKind(kind), identifiers.form(word)), word
        assert coded == any(letter in b"0123456789=@" for letter in word)


@given(st.lists(WORD.map(str.encode), min_size=1, max_size=50))
def test_a_hash_is_of_the_bytes_alone(words: list[bytes]) -> None:
    found = SegmentSplitter(Separators((b"\0",)), 32).split(table(b"\0\0".join((word, b"x", word)) for word in words))
    of_words: dict[bytes, int] = {}
    for text, one in zip(found.texts(np.arange(len(found.starts))), found.hashes.tolist(), strict=True):
        assert of_words.setdefault(text, one) == one
    assert len(set(of_words.values())) == len(of_words)
    assert len(set(name_hashes(words).tolist())) == len(set(words))


HEX = "0123456789abcdef"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ANY_PART = st.one_of(
    st.text(string.digits, max_size=8),
    st.text(HEX, max_size=40),
    st.text(HEX, min_size=8, max_size=8),
    st.text(HEX.upper(), max_size=20),
    st.text(string.ascii_letters + string.digits, max_size=12),
    st.text("abeEoTs19", min_size=19, max_size=34),
    st.text(string.ascii_letters + string.digits, min_size=21, max_size=22),
    st.text(CROCKFORD, min_size=26, max_size=26),
    st.text(CROCKFORD.lower() + "u9", min_size=25, max_size=26),
    st.text("0123456789ABCDEFUZ", min_size=26, max_size=26),
    st.from_regex(r"[a-z]{0,5}[0-9]{0,8}", fullmatch=True),
    st.sampled_from(
        ["user", "createPreLoanStageHandler", "V1StGXR8Z5jdHi6BmyTqk0c2PwL", "2024", "01", "02T03", "É", "v2"]
    ),
    st.builds(lambda at: "searching" + "6b86b273ff34fce19d6b804eff5a3f57"[:at], st.integers(30, 32)),
)
UUID = st.from_regex(r"[0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", fullmatch=True)
IP6 = st.one_of(
    st.from_regex(r"[0-9a-f]{1,4}(:[0-9a-f]{1,5}){6,8}", fullmatch=True),
    st.from_regex(r"(2001|fe80|ff02|fc1|feed|3fff)(:[0-9a-f]{1,4}){0,4}::?(:?[0-9a-f]{1,4}){0,4}", fullmatch=True),
)
SEGMENT = st.one_of(
    st.lists(st.one_of(ANY_PART, ANY_PART, UUID), min_size=1, max_size=4).flatmap(
        lambda words: st.sampled_from("-_./|:=@+ ").map(lambda mark: mark.join(words))
    ),
    st.lists(st.one_of(ANY_PART, UUID, st.sampled_from("-_./@:={} \0")), max_size=6).map("".join),
    st.from_regex(r"[a-z0-9.]{0,9}@[a-z@. ]{0,9}\.(com|c|x1|xn--a|[A-Z]{0,3})", fullmatch=True),
    st.text(string.ascii_letters + string.digits + "_-", min_size=19, max_size=45),
    st.builds("{}-{}".format, ANY_PART, UUID),
    st.builds("{{{}}}".format, st.one_of(ANY_PART, UUID, IP6)),
    IP6,
    st.text(max_size=6),
)


def check(segments: list[bytes]) -> None:
    """Compare with the form of each by itself, all of them together and again when shapes are known."""
    separators = Separators((b"\xff\xff",))
    identifiers = Identifiers(())
    segments = [segment for segment in segments if len(segment) <= LONGEST] or [b""]
    split = SegmentSplitter(separators, 1).split(pl.DataFrame(list(names_of(segments))))
    forms = Forms(identifiers)
    for order in (np.arange(len(segments)), np.arange(len(segments))[::-1]):
        labels = forms.of(split, split.first[order], np.full(len(order), -1), 1)
        for at, number, is_sure in zip(order, labels.numbers, labels.is_sure, strict=True):
            form = identifiers.form(segments[at])
            found = (forms.labels[number], bool(is_sure))
            assert found == (form.pattern or form.numbered, form.pattern is not None), segments[at]


@settings(deadline=None, max_examples=examples(800))
@given(st.lists(SEGMENT.map(str.encode), min_size=1, max_size=30))
def test_labels_are_those_of_the_forms(segments: list[bytes]) -> None:
    check(segments)


@settings(deadline=None, max_examples=examples(400))
@given(st.lists(ANY_PART, min_size=1, max_size=3), st.sampled_from("-_.|/"), st.randoms())
def test_segments_that_differ_in_digits_only(words: list[str], mark: str, rng: Random) -> None:
    text = mark.join(words).encode()
    text = text if rng.random() < 0.5 else b"%s{%s}" % (text, words[0].encode())
    changed = [
        text.translate(bytes.maketrans(b"0123456789", bytes(48 + (digit * step + 1) % 10 for digit in range(10))))
        for step in (1, 3, 7)
    ]
    check([text, *changed, text.upper(), text.lower()])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_segments_of_the_grammar(seed: int) -> None:
    names = [name for _, name in Grammar(seed, 300).drawn(4_000)]
    check(sorted({part for name in names for part in (name, *name.split(b":"))}))


def test_numbers_beside_a_tag_stay_in_the_pattern() -> None:
    check([b"x1-note-%d{7}" % number for number in range(1, 40)])
    check([b"note-%d-{x%d}-5{%s}" % (number, number, b"0a1b2c3d4e") for number in range(1, 40)])


def test_many_forms_are_forgotten_and_learnt_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.table.patterns.MOST_REMEMBERED", 3)
    check([b"page_%d" % number for number in range(30)])
    check([b"%s_%d" % (letter, 7) for letter in (b"a", b"b", b"c", b"d")])
