"""The compiled tables of a registry decide as the registry does, or leave a key to it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.keyspace.text.segments import Separators
from rtui.registry.find import SHIPPED, shipped_names
from rtui.registry.forms import DATE, FORMS, INT, IP, WORD, Form, Values
from rtui.registry.load import load_registry
from rtui.registry.matching import Matcher
from rtui.registry.naming import ALL_RULES, STYLE_BITS, NamingConfig, NamingRules
from rtui.registry.patterns import read_pattern
from rtui.registry.words import Glossary, Style
from rtui.server.engine import is_built
from tests.examples import examples
from tests.grammar import Grammar
from tests.registry.strategies import keys, keys_of, patterns

if os.environ.get("RTUI_REQUIRE_ENGINE") == "1":
    assert is_built(), "the compiled engine was not built"
elif not is_built():
    pytest.skip("the compiled engine was not built", allow_module_level=True)

from rtui.server.engine._registry import RegistryTable

ANY = (-(1 << 63), (1 << 63) - 1)

CONFIGS = (
    NamingConfig(),
    NamingConfig(styles=Style.CAMEL, longest=12, hardest=20, shortest=2, deepest=2),
    NamingConfig(styles=Style.LOWER | Style.SNAKE, styles_below={b"a:": Style.UPPER, b"7": Style.KEBAB}),
    NamingConfig(characters="a-z0:é", other_separators="-_", glossary=Glossary([(b"ab", b"list")])),
    NamingConfig(styles=Style.SNAKE, glossary=Glossary([(b"cfg", b"config"), (b"s", b"session category")])),
)

MIXED = (
    *(
        b"user:7:cart",
        b"userProfile:UID:18",
        b"a:b:c:d:1",
        b"plain",
        b"x",
        b"",
        b"{}",
        b"{a",
        b"a}b",
        b"{{a}}:x",
        b"{a}{b}:c",
    ),
    *(
        b"user profile 12345",
        b"app/user/1",
        b"view/product/7:x",
        b'q"uote:1',
        b"a\nb:c",
        b"tab\there",
        b"back\\slash",
        b"\xff:\xfe",
        "ключ:é".encode(),
    ),
    *(b":::", b"a::b", b"a:" * 20, b"x" * 70 + b":y", b"u1000flw", b"MyApp_User_Profile_12345", b"www.example.com:7"),
    *(
        b"_private:__a",
        b"_9:_",
        b"{tag}.following",
        b"a-b_c.d:e",
        b"7c9e6679-7425-40de-944b-e07fc1f90ae7:x",
        b"aB3xK9:z",
    ),
    *(
        b"2001:db8::7",
        b"10.0.0.5:login",
        b"a:" * 70,
        b"page_7:v1.2",
        b"cfg:usr-ab",
        b"a/b|c;d:e",
        b"dGhlIHNhbXBsZQ==:x",
    ),
)


PIECES = (
    b"user",
    b"Profile",
    b"HTTP",
    b"prfl",
    b"sessn",
    b"categories",
    b"cfg",
    b"id",
    b"x",
    b"v",
    b"7",
    b"com",
    b"\xc3\xa9",
)

WORDY = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).flatmap(
    lambda pieces: st.sampled_from((b"", b"_", b"-", b".", b"/", b"}.")).map(lambda joint: joint.join(pieces))
)
"""Names of words and abbreviations in all styles."""


def table_of(matcher: Matcher, rules: NamingRules) -> RegistryTable:
    count = len(matcher.patterns) + 1
    bounds = [(ANY, ANY, ANY)] * count
    return RegistryTable(matcher.tables(), rules.tables(), bounds, [False] * count, ALL_RULES, ALL_RULES | STYLE_BITS)


def decided(matcher: Matcher, rules: NamingRules, names: Sequence[bytes]) -> list[bytes]:
    """Compare what both say, twice, since the table keeps what it has found; return the names that it decides."""
    table, found = table_of(matcher, rules), matcher.match_page(names)
    wanted = [*zip(found, rules.found_in(names, found), strict=True)]
    for _ in range(2):
        judged = table.judge(list(names))
        for name, one, other in zip(names, judged, wanted, strict=True):
            assert one in (None, other), name
    return [name for name, one in zip(names, judged, strict=True) if one is not None]


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_any_patterns_and_names(data: st.DataObject) -> None:
    separators = data.draw(st.sampled_from(((b":",), (b":", b"/"), (b"-", b":"), (b".",), ())))
    drawn = data.draw(st.lists(patterns(separators), max_size=8))
    mixed = st.sampled_from(MIXED) | st.binary(max_size=20) | WORDY | st.lists(WORDY, max_size=3).map(b":".join)
    names = data.draw(st.lists(st.one_of(keys(), mixed, *map(keys_of, drawn)), min_size=1, max_size=15))
    config = data.draw(st.sampled_from(CONFIGS))
    config = NamingConfig(
        separators=separators,
        **{name: getattr(config, name) for name in NamingConfig.__slots__ if name != "separators"},
    )
    exempt = frozenset(data.draw(st.sets(st.integers(0, 7), max_size=1)))
    rules = NamingRules(config, drawn, exempt=exempt, longest_of={0: 30})
    decided(Matcher(drawn, separators), rules, names)


VALUES = (
    *(b"42", b"0", b"9f2c41AB", b"g1", b"2026-11-22", b"2026/11.22", b"2026-11", b"2026-W47", b"20261122", b"202611"),
    *(b"2026-11-22T10", b"2026-11-22 10-11-12.345Z", b"2026-11-22_1011", b"20261122T1011", b"20261122101112Z"),
    *(b"2026-11-22T10.123", b"2026-11-22T10.12.5", b"20261122Z", b"2026-11-22T", b"2026-11-22Z", b"2026-11-22T10:11Z"),
    *(
        b"10.0.0.5",
        b"256.1.1.1",
        b"01.2.3.4",
        b"1.2.3.4.5",
        b"::",
        b"::1",
        b"1::",
        b"1:2:3:4:5:6:7:8",
        b"1::8",
        b"1:::2",
    ),
    *(
        b"1:2:3:4:5:6:7::",
        b"::2:3:4:5:6:7:8",
        b"1:2:3:4:5:6:1.2.3.4",
        b"::1.2.3.4",
        b"1::2::3",
        b"12345::",
        b":1",
        b"1:",
    ),
    *(
        b"1:2:3:4:5::1.2.3.4",
        b"1:2:3:4:5:6::1.2.3.4",
        b"::ffff:10.0.0.5",
        b"2001:db8::7",
        b"1:2:3:4:5:6:7:8:9",
        b"::1:",
    ),
    *(
        b"a@b.cc",
        b"first.last@mail.example.org",
        b"a@b.c",
        b"@b.cc",
        b"a@.cc",
        b"a@b..cc",
        b"a@b.c1",
        b"a@@b.cc",
        b"\xc3@b.cc",
    ),
    *(b"7c9e6679-7425-40de-944b-e07fc1f90ae7", b"01ARZ3NDEKTSV4RRFFQ69G5FAV", b"81ARZ3NDEKTSV4RRFFQ69G5FAV"),
    *(
        b"01ARZ3NDEKTSV4RRFFQ69G5FAI",
        b"d41d8cd98f00b204e9800998ecf8427e",
        b"word-7_x",
        b"-word",
        b"Z",
        b"",
        b"\n",
        b"a b",
    ),
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A value with up to two bytes replaced, removed or inserted."""
    found = bytearray(draw(st.sampled_from(VALUES)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(found)))
        found[at : at + draw(st.integers(0, 1))] = draw(
            st.sampled_from((b"", b".", b":", b"0", b"9", b"f", b"g", b"-", b"Z"))
        )
    return bytes(found)


def same_form(form: Form, values: Sequence[bytes]) -> None:
    """Fail unless the table tells values of a form as its expression does."""
    pattern = [read_pattern("{x}", {"x": Values(form)}, (b":",))]
    matcher = Matcher(pattern, (b":",))
    rules = NamingRules(NamingConfig(), pattern, exempt=frozenset({0}))
    judged = table_of(matcher, rules).judge(list(values))
    for value, one, entry in zip(values, judged, matcher.match_page(values), strict=True):
        assert one is None or one[0] == entry, (form.name, value)
        assert one is not None or entry < 0, (form.name, value)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(mutated(), min_size=1, max_size=30))
def test_every_form_of_a_placeholder(values: list[bytes]) -> None:
    for form in FORMS.values():
        same_form(form, values)


def test_all_values_of_the_list_above() -> None:
    for form in FORMS.values():
        same_form(form, VALUES)


@pytest.mark.parametrize("name", shipped_names())
def test_registries_that_ship_and_names_of_real_keyspaces(name: str) -> None:
    registry = load_registry(SHIPPED / f"{name}.toml")
    names = [write[1] for write in Grammar(7).writes(400) if write[0] != "PEXPIRE"]
    names += [example for entry in registry.entries for example in entry.examples]
    names += [entry.pattern.sample() for entry in registry.entries]
    told = [one if isinstance(one, bytes) else str(one).encode() for one in names]
    if Separators(registry.separators).values and all(len(one) == 1 for one in registry.separators):
        decided(registry.matcher, registry.naming, told)


def test_usual_keys_are_decided() -> None:
    texts = (
        "app:{ip}:at:{day}",
        "app:session:{id}",
        "app:rate:{ip}",
        "app:{what}:{day}",
        "page_{n}:{**}",
        "{{user{id}}}.following",
    )
    values = {"ip": Values(IP), "day": Values(DATE), "id": Values(INT), "n": Values(INT), "what": Values(WORD)}
    found = [read_pattern(text, values, (b":",)) for text in texts]
    names = [
        b"app:session:%d",
        b"app:rate:10.0.0.%d",
        b"app:rate:2001:db8::%d",
        b"app:login:202611%02d",
        b"page_%d:a:b",
    ]
    names += [b"app:10.0.0.%d:at:2026-11-22T10:11", b"app:2001:db8::%d:at:20261122", b"usr_cfg-%d:a/b", b"flat_name_%d"]
    names += [b"{user%d}.following", b"other:%d:name", b"other:9f2c41ab%d:name", b"some:userName:x%d", b"aB3xK9:q%d"]
    some = [name % at for name in names for at in range(10, 20)]
    rules = NamingRules(NamingConfig(), found)
    assert len(decided(Matcher(found, (b":",)), rules, some)) == len(some)
