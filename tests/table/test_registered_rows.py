"""Names of one shape can't be told apart by a registry, and what is counted of rows is what is counted of batches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from rtui.registry.expectations import Expectations, read_length, read_size, read_ttl
from rtui.registry.matching import Matcher
from rtui.registry.naming import Glossary, NamingConfig, NamingRules, Style
from rtui.registry.patterns import (
    DATE,
    EMAIL,
    ENUM,
    HASH,
    HEX,
    INT,
    IP,
    ULID,
    WORD,
    Pattern,
    PatternError,
    Values,
    read_pattern,
)
from rtui.registry.registry import Registry, RegistryEntry
from rtui.registry.rules import RuleLevels
from rtui.table.aggregates import with_moment
from rtui.table.key_count import KeyCount
from rtui.table.naming_counts import NamingCounts
from rtui.table.registered import RegistryCounts
from rtui.table.registered_rows import RegisteredRows, shapes_of
from rtui.table.schema import NEVER
from rtui.table.schema import keys_of as keys_of_table
from tests.examples import examples
from tests.grammar import Grammar
from tests.registry.strategies import SEPARATORS, keys_of, patterns
from tests.table.drawn_rows import table_of

HEX_DIGITS = "0123456789abcdef"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def drawn_from(alphabet: str, *sizes: int) -> st.SearchStrategy[str]:
    return st.sampled_from(sizes).flatmap(lambda size: st.text(alphabet, min_size=size, max_size=size))


UUIDS = st.tuples(*(drawn_from(HEX_DIGITS, size) for size in (8, 4, 4, 4, 12))).map("-".join)

WORDS = st.one_of(
    st.sampled_from(("a", "ab", "list", "cafe", "v1", "v2", "7", "userName", "usr", "2026", "k8s", "dead", "T", "Z")),
    drawn_from("0123456789", 1, 2, 4, 6, 8, 14, 26),
    drawn_from(HEX_DIGITS, 4, 8, 26, 32, 40),
    drawn_from(HEX_DIGITS + "ABCDEF", 8, 32),
    drawn_from(CROCKFORD, 26),
    drawn_from(LETTERS, 4, 8, 12, 20, 21, 22, 24, 27, 32),
    UUIDS,
    st.sampled_from(
        (
            "10.0.0.250", "10.0.0.270", "2001:db8::7", "ann@b1.com", "bob@a.org", "ann7@b", "2026-11-22", "2026-W12",
            "<a>", "é",
        )
    ),
)  # fmt: skip
NAMES = st.lists(st.one_of(WORDS, st.sampled_from((":", ":", "-", "_", "/", ".", "::", ""))), min_size=1, max_size=9)

_LITERALS = ("cafe", "v1", "v2", "a1", "7", "dead", "u", "2026", "x-", "9-", "-8", "A")
_FORMS = (
    *(Values(ULID), Values(HASH), Values(HEX), Values(lengths=((1, 8),)), Values(ENUM, (b"v1", b"k8s", b"cafe"))),
    Values(),
)


@st.composite
def glued(draw: st.DrawFn, separators: Sequence[bytes]) -> Pattern:
    """A pattern with literal text right beside placeholders."""
    text, values = "", dict[str, Values]()
    for at, shape in enumerate(draw(st.lists(st.sampled_from(("w", "p", "wp", "pw", "pwp", "wpw")), max_size=3))):
        text += draw(st.sampled_from(separators)).decode() if at and separators else ""
        for kind in shape:
            if kind == "p" and not text.endswith("}") and len(values) < 3:
                values[f"p{len(values)}"] = draw(st.sampled_from(_FORMS))
                text += f"{{p{len(values) - 1}}}"
            else:
                text += draw(st.sampled_from(_LITERALS))
    try:
        return read_pattern(text or "a", values, separators)
    except PatternError:
        reject()


@st.composite
def registries(draw: st.DrawFn) -> Registry:
    separators = draw(st.sampled_from(SEPARATORS))
    found = draw(st.lists(st.one_of(patterns(separators), glued(separators)), max_size=8))
    config = NamingConfig(
        separators=tuple(separators),
        styles=draw(st.sampled_from((None, Style.CAMEL))),
        styles_below=draw(st.sampled_from(({}, {b"v1": Style.SNAKE}, {b"a:b2": Style.KEBAB}))),
        glossary=draw(st.sampled_from((None, Glossary([(b"usr", b"user"), (b"cafe", b"coffee")])))),
    )
    return registry_of(found, config)


def registry_of(found: Sequence[Pattern], config: NamingConfig) -> Registry:
    choices = (
        Expectations(ttl=read_ttl("none")),
        Expectations((b"hash",), read_ttl("30m..2h"), read_size("<=1K"), "", read_length("1..10"), ""),
        Expectations((b"string", b"hash"), read_ttl("required"), read_size(">=100")),
    )
    entries = tuple(RegistryEntry(one, choices[at % 3]) for at, one in enumerate(found))
    rules = NamingRules(config, found)
    return Registry(None, "", config.separators, entries, Matcher(found, config.separators), rules, RuleLevels())


@pytest.mark.slow
@settings(max_examples=examples(1_000))
@given(registries(), st.data())
def test_names_of_one_shape_are_judged_alike(registry: Registry, data: st.DataObject) -> None:
    shapes = shapes_of(registry)
    if shapes is None:
        return
    drawn = [NAMES.map(lambda parts: "".join(parts).encode())] * 2
    drawn += [keys_of(entry.pattern) for entry in registry.entries]
    keys = [*dict.fromkeys(data.draw(st.lists(st.one_of(drawn), min_size=1, max_size=40)))]
    rng = random.Random(data.draw(st.integers(0, 1 << 32)))
    keys += [bytes(rng.choice(_like(byte)) for byte in key) for key in keys for _ in range(4)]
    table = table_of({"key": key} for key in keys if key)
    table = table.filter(shapes.have_one(table))
    names = [name.encode() for name in table["name"].to_list()]
    entries = registry.matcher.match_page(names)
    judged = NamingCounts(registry).judged(names, entries)
    known: dict[int, object] = {}
    for name, shape, one in zip(names, shapes.of(table["name"]).tolist(), judged, strict=True):
        assert known.setdefault(shape, one) == one, name


def _like(byte: int) -> bytes:
    """Return bytes that are often alike to a shape."""
    if byte in b"0123456789":
        return b"0123456789"
    return b"abcdef0" if byte in b"abcdef" else bytes([byte])


RANDOM = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9"


@pytest.mark.parametrize(
    ("text", "form", "one", "other"),
    [
        ("cafe<x>", Values(), "cafe12ab", "beef12ab"),
        ("<x>cafe", Values(), "12abcafe", "12abbeef"),
        ("cafe12ab", Values(), "cafe12ab", "cafe12ac"),
        ("a0aaaaaa", Values(), "a0aaaaaa", "b12bbbbb"),
        ("v0", Values(), "v0", "v1"),
        ("v2<x>", Values(), "v21", "v31"),
        ("<x>-2026", Values(), "1-2026", "1-2027"),
        ("user<x>", Values(), "user" + RANDOM[:23], RANDOM),
        ("<x>mN1p", Values(), RANDOM + "mN1p", RANDOM + "Q3sT"),
        ("<x>x<y>", Values(), "aB3dE5gH7jK9xN1pQ3sT5vW7yZ9", RANDOM),
        ("<x>b<y>", Values(), "12acb3d4e", "12acd3d4e"),
        ("<x>", Values(ULID), "7" * 26, "8" * 26),
        ("<x>", Values(ULID), "7abcdefabcdefabcdefabcdef0", "8abcdefabcdefabcdefabcdef0"),
        ("<x>", Values(HASH), "aB" * 15 + "c1", "aB" * 15 + "g1"),
        ("<x>", Values(IP), "10.0.0.250", "10.0.0.270"),
        ("<x>:1", Values(IP), "10.0.0.255:1", "10.0.0.256:1"),
        ("<x>:1", Values(IP), "10.0.10.25:1", "10.0.01.25:1"),
        ("<x>:1", Values(IP), "10.0.0.0:1", "10.0.0.00:1"),
        ("<x>", Values(WORD), "ab12cd34", "1b12cd34"),
        ("<x>-<y>", Values(INT), "ab12cd34-ab12-1234-1234-123456789012", "ab12cd34-ab12-1234-1234-12345678901a"),
        (
            "<x>-dead-1234-1234-<y>",
            Values(),
            "ab12cd34-dead-1234-1234-123456789012",
            "ab12cd34-beef-1234-1234-123456789012",
        ),
        ("<x>:a", Values(ULID), "7abcdefABCdef7bcdefabcdef0:a", "8abcdefABCdef7bcdefabcdef0:a"),
        ("<x>:a", Values(HEX), "1abC2ab:a", "1abG2ab:a"),
        ("<x>:1", Values(DATE), "20261122T120000Z:1", "20261122A120000B:1"),
        ("<x>:a9b9c9", Values(), "1:a9b9c9", "1:a9b9d9"),
        ("ann@<x>", Values(), "ann@b.com", "bob@b.com"),
        ("<x>", Values(EMAIL), "ann@b.com", "ann@b.c0m"),
        ("<x>", Values(ENUM, (b"12ab34cd",)), "12ab34cd", "12ab34ce"),
        ("<x>", Values(lengths=((1, 9),)), "12ab34cda", "12ab34cdaa"),
    ],
)
def test_names_that_patterns_tell_apart_have_other_shapes(text: str, form: Values, one: str, other: str) -> None:
    pattern = read_pattern(text, {"x": Values() if "<y>" in text else form, "y": form}, (b":",))
    registry = registry_of([pattern], NamingConfig(separators=(b":",)))
    shapes = shapes_of(registry)
    table = table_of({"key": name.encode()} for name in (one, other))
    assert registry.matcher.match_page([one.encode(), other.encode()]) == [0, -1]
    assert shapes is not None
    assert shapes.have_one(table).all()
    first, second = shapes.of(table["name"]).tolist()
    assert first != second


def test_namespaces_have_other_shapes() -> None:
    shapes = shapes_of(registry_of([], NamingConfig(separators=(b":", b"."))))
    assert shapes is not None
    names = ("bob@a.org", "doe@e.org", "x:bob@a:1", "x:doe@e:1", "x:y:bob@a", "x:y:doe@e", "bob7@a.org", "doe7@e.org")
    found = shapes.of(table_of({"key": name.encode()} for name in names)["name"]).tolist()
    assert len({*found[:5]}) == 5
    assert found[4] == found[5]
    assert found[6] == found[7]


def test_few_shapes_stand_for_many_names() -> None:
    registry = registry_of([read_pattern("app:<id>:v1", {}, (b":",))], NamingConfig(separators=(b":",)))
    shapes = shapes_of(registry)
    assert shapes is not None
    rng = random.Random(3)
    tokens = ["".join(rng.choices(LETTERS, k=27)) for _ in range(500)]
    names = [f"app:{rng.getrandbits(128):032x}:v1" for _ in range(500)] + [f"s:{token}" for token in tokens]
    names += [f"u:{at:05}:7-{at:05}" for at in range(500)]
    names += [f"t:{rng.getrandbits(32):08x}-1234-4{rng.getrandbits(12):03x}-ab12-abcdef123456" for _ in range(500)]
    assert len({*shapes.of(table_of({"key": name.encode()} for name in names)["name"]).tolist()}) < 80


ROWS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("hash", "string", None)),
        "expires_ms": st.sampled_from((None, NEVER, 0, 1_000_000, 10_000_000, (1 << 62))),
        "memory_bytes": st.sampled_from((None, 1, 99, 1_024, 1_025, (1 << 62))),
        "length": st.sampled_from((None, 0, 5, 11)),
        "sampled": st.booleans(),
    }
)


@given(st.integers(0, 1 << 32), st.lists(ROWS, min_size=1, max_size=20), st.integers(1, 3), st.booleans())
def test_rows_are_counted_as_names_that_have_no_shape_are(
    seed: int, facts: list[dict[str, object]], chunks: int, is_sample: bool
) -> None:
    grammar = Grammar(seed, 30)
    rng = grammar.rng
    found = [read_pattern(text, {}, (b":",)) for text in ("<a>:<b>", "<a>:<int>", "<a>:<b>:<c>", "<word>-<int>")]
    registry = registry_of(found, NamingConfig(separators=(b":",), styles=Style.CAMEL))
    names = [rng.choice(grammar.patterns).name(rng) for _ in range(30)]
    keys = [*dict.fromkeys([*names, b"\xff:7", "é:7".encode(), b"x" * 300 + b":1", b""])]
    rows = [{"key": key, **facts[at % len(facts)]} for at, key in enumerate(keys)]
    by_shape, one_by_one = (RegistryCounts(registry, is_sample=is_sample) for _ in range(2))
    counting, without = RegisteredRows(by_shape), RegisteredRows(one_by_one)
    without._shapes = None
    for at in range(chunks):
        add(counting, rows[at::chunks])
        for row in rows[at::chunks]:
            add(without, [row])
    assert _said(by_shape) == _said(one_by_one)


def add(counting: RegisteredRows, rows: list[dict[str, object]]) -> None:
    table = with_moment(table_of(rows), 5_000)
    counting.add(table, np.array([crc32(key) for key in keys_of_table(table)], np.int64))


def _said(counts: RegistryCounts) -> object:
    entries, naming = counts.entries, counts.naming
    return (
        entries._layouts,
        *(entries._memory, entries._expiring, entries._longest_ms),
        *({place: _keys_of(one) for place, one in some.items()} for some in (entries._broken, naming._counts)),
        {index: _keys_of(one) for index, one in entries._shown.items() if one.examples or one.long_names or one.sizes},
        naming._second,
    )


def _keys_of(count: KeyCount) -> tuple[object, ...]:
    sizes = count.sizes and (count.sizes.count, count.sizes.sum, count.sizes.min, count.sizes.max, count.sizes._counts)
    return count.keys, count.memory_keys, count.memory_bytes, [*count.examples], count.long_names, sizes


@pytest.mark.parametrize(
    "text", ["<a>7<b>", "x<ulid>", "<ip>x"], ids=["a digit between placeholders", "a ULID in a word", "an IP in a word"]
)
def test_where_shapes_are_not_sure_there_are_none(text: str) -> None:
    assert shapes_of(registry_of([read_pattern(text, {}, (b":",))], NamingConfig(separators=(b":",)))) is None
