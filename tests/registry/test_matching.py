"""The most specific pattern of a key, the rules for its name, and what is expected of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.keyspace.text.quantities import Bounds, write_duration
from rtui.registry.expectations import (
    NO_TTL,
    Breach,
    ExpectationError,
    Expectations,
    FoundKey,
    breaches_of,
    read_length,
    read_size,
    read_ttl,
    read_type,
)
from rtui.registry.matching import NO_PATTERN, Matcher, ambiguities, common_key
from rtui.registry.naming import (
    ALL_RULES,
    ALL_STYLES,
    NAME_RULES,
    Glossary,
    NamingConfig,
    NamingRules,
    Style,
    rule_ids,
    styles_of,
    words_of,
)
from rtui.registry.patterns import ENUM, INT, IP, LONGEST_KEY, Pattern, Values, read_pattern
from rtui.registry.rules import RULES, Family
from tests.conftest import examples
from tests.registry.strategies import SEPARATORS, keys, keys_of, naive, patterns

COLON = (b":",)


def read(*texts: str, separators: Sequence[bytes] = COLON, **values: Values) -> list[Pattern]:
    return [read_pattern(text, values, separators) for text in texts]


def winner(texts: Sequence[str], key: bytes, **values: Values) -> str | None:
    found = [read_pattern(text, values, COLON) for text in texts]
    index = Matcher(found, COLON).match(key)
    return None if index is None else found[index].text


@given(st.data())
@settings(max_examples=examples(120), deadline=None)
def test_it_finds_what_trying_every_pattern_finds(data: st.DataObject) -> None:
    separators = data.draw(st.sampled_from(SEPARATORS))
    found = data.draw(st.lists(patterns(separators), max_size=8))
    drawn = data.draw(st.lists(st.one_of(keys(), *map(keys_of, found)), min_size=1, max_size=12))
    matcher = Matcher(found, separators)
    tried = [(index, naive(found[index])) for index in matcher.order]
    expected = [next((index for index, expression in tried if expression.fullmatch(key)), NO_PATTERN) for key in drawn]
    assert matcher.match_page(drawn) == expected
    assert [matcher.match(key) for key in drawn] == [None if one == NO_PATTERN else one for one in expected]


@given(st.data())
@settings(max_examples=examples(100), deadline=None)
def test_the_values_of_a_key_make_the_key_again(data: st.DataObject) -> None:
    pattern = data.draw(patterns(data.draw(st.sampled_from(SEPARATORS))))
    key = data.draw(keys_of(pattern))
    fields = pattern.fields(key)
    assert (fields is not None) == pattern.matches(key) == (naive(pattern).fullmatch(key) is not None)
    if fields is not None and len(fields) == len(pattern.placeholders):
        assert pattern.filled(fields) == key


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_patterns_that_a_key_cannot_be_told_by_are_named_with_such_a_key(data: st.DataObject) -> None:
    separators = data.draw(st.sampled_from(SEPARATORS[:3]))
    first, second = data.draw(patterns(separators)), data.draw(patterns(separators))
    example = common_key(first, second)
    if example is not None:
        assert naive(first).fullmatch(example)
        assert naive(second).fullmatch(example)
    # Where each segment is text, or one placeholder that does not span, every key that both have is found.
    plain = all(
        len(segment.parts) <= 1 and not segment.spans(separators)
        for pattern in (first, second)
        for segment in pattern.segments
    )
    if plain and example is None:
        for key in (data.draw(keys_of(first)), data.draw(keys_of(second))):
            assert not (naive(first).fullmatch(key) and naive(second).fullmatch(key)), key


@pytest.mark.parametrize(
    ("texts", "key", "most_specific"),
    [
        (("user:<id>:<what>", "user:<id>:cart"), b"user:7:cart", "user:<id>:cart"),
        (("<a>:<b>:<c>", "user:<id>:<what>"), b"user:7:cart", "user:<id>:<what>"),
        (("<**>", "<a>:<b>"), b"user:7", "<a>:<b>"),
        (("user:<**>", "user:<a>:<b>"), b"user:7:8", "user:<a>:<b>"),
        (("user:<**>", "<a>:<b>:<c>"), b"user:7:8", "user:<**>"),
        (("<what>", "rank_<period>", "rank_daily_<n>"), b"rank_daily_7", "rank_daily_<n>"),
        (("<name>", "<int>"), b"17", "<int>"),
        (("<name>", "<int>"), b"x", "<name>"),
        (("app:rate:<ip>", "app:rate:<what>"), b"app:rate:10.0.0.1", "app:rate:<ip>"),
        (("app:rate:<ip>", "app:<a>:<b>:<c>"), b"app:rate:2001:db8::7", "app:rate:<ip>"),
        (("<entity>:<id>", "<entity>:list"), b"user:list", "<entity>:list"),
        (("a:<x>:<y>:d:<z>", "a:<**>:d:e"), b"a:1:2:d:e", "a:<**>:d:e"),
    ],
)
def test_the_most_specific_pattern_counts(texts: Sequence[str], key: bytes, most_specific: str) -> None:
    assert winner(texts, key) == most_specific
    assert winner(texts[::-1], key) == most_specific


def test_one_of_a_list_is_more_specific_than_a_form_and_that_than_anything() -> None:
    texts, values = ("<any>:x", "<n>:x", "<one>:x"), {"n": Values(INT), "one": Values(ENUM, (b"7", b"8"))}
    assert winner(texts, b"7:x", **values) == "<one>:x"
    assert winner(texts, b"9:x", **values) == "<n>:x"
    assert winner(texts, b"y:x", **values) == "<any>:x"


def test_an_ambiguity_is_named_with_a_key_and_the_earlier_text_counts() -> None:
    found = read("<entity>:list", "user:<id>")
    assert [(one.first, one.second, one.example) for one in ambiguities(found)] == [(0, 1, b"user:list")]
    assert winner(("<entity>:list", "user:<id>"), b"user:list") == "user:<id>"


def test_patterns_alike_in_all_but_a_name_are_ambiguous_and_the_first_counts() -> None:
    assert [one[:2] for one in ambiguities(read("user:<a>", "user:<b>"))] == [(0, 1)]
    assert winner(("user:<a>", "user:<b>"), b"user:1") == "user:<a>"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("rank_<x>_a", "rank_b_<y>"),
        ("<x>_m_<y>", "<u>-n-<v>"),
        ("pre<x>", "<y>fix"),
        ("app:<**>:a", "app:b:<**>"),
        ("<int>:a", "<hex>:<hash>"),
    ],
)
def test_keys_of_two_unlike_patterns_are_found(first: str, second: str) -> None:
    one, two = read(first, second)
    example = common_key(one, two)
    if (first, second) == ("<int>:a", "<hex>:<hash>"):
        assert example is None
    else:
        assert example is not None
        assert one.matches(example)
        assert two.matches(example)


def test_patterns_without_a_common_key_are_no_ambiguity() -> None:
    assert not list(ambiguities(read("user:<id>:cart", "user:<id>:orders", "<int>:x", "<uuid>:x")))


def test_hash_tags_are_literal_braces() -> None:
    assert winner(("{{user{id}}}.following",), b"{user1000}.following") == "{user<id>}.following"
    assert winner(("{user:<id>}:<what>",), b"{user:100}:posts") == "{user:<id>}:<what>"


def test_a_leading_separator_and_empty_segments_are_real() -> None:
    assert winner((":<version>:<**>",), b":1:views.cache") == ":<version>:<**>"
    assert winner(("a::<x>",), b"a::1") == "a::<x>"
    assert winner(("a:<y>:<x>",), b"a::1") is None


def test_a_key_longer_than_any_name_has_no_pattern() -> None:
    assert winner(("<**>",), b"x" * LONGEST_KEY) == "<**>"
    assert winner(("<**>",), b"x" * (LONGEST_KEY + 1)) is None


@pytest.mark.parametrize("text", ["<a>_<b>x", "<a>_<b>_<c>x", "<a>_<n>_<b>x", "<**>:<a>_<b>x"])
def test_a_hostile_key_takes_a_time_that_does_not_explode(text: str) -> None:
    """It would take years if every way to divide the key were tried: the test would not end."""
    assert not read_pattern(text, {"n": Values(INT)}, COLON).matches(b"_1" * (LONGEST_KEY // 2))


def test_the_most_specific_comes_first() -> None:
    found = read("<entity>:<id>", "user:<id>:x", "rate:<ip>", ip=Values(IP), entity=Values(ENUM, (b"user", b"role")))
    assert Matcher(found, COLON).order == (1, 2, 0)


@given(st.sampled_from(SEPARATORS).flatmap(lambda one: st.lists(patterns(one), min_size=2, max_size=12)))
@settings(max_examples=examples(60), deadline=None)
def test_no_pair_is_left_out_that_has_a_key_in_common(some: list[Pattern]) -> None:
    found = {one[:2] for one in ambiguities(some)}
    pairs = combinations(range(len(some)), 2)
    alike = [(one, two) for one, two in pairs if some[one].specificity == some[two].specificity]
    assert found == {(one, two) for one, two in alike if common_key(some[one], some[two]) is not None}


GLOSSARY = Glossary([(b"usr", b"user"), (b"ord", b"order"), (b"sess", b"session"), (b"cfg", b"config")])

CASES: dict[str, tuple[NamingConfig, tuple[bytes, ...], tuple[bytes, ...]]] = {
    "name-separator": (
        NamingConfig(),
        (b"MyApp_User_Profile_12345", b"rank-daily-7", b"app/user/1", b"shop.user.cart"),
        (b"app:user:1", b"dump_lock", b"7c9e6679-7425-40de-944b-e07fc1f90ae7", b"2026-11-22", b"10.0.0.1"),
    ),
    "name-mixed-separators": (
        NamingConfig(),
        (b"app/user:1", b"app/user/1:x", b"user:profile.page.title:1", b"a|b:user"),
        (b"app:user:1", b"rate:10.0.0.1", b"mail:ann@example.com", b"file:logo.png", b"host:www.example.com"),
    ),
    "name-case": (
        NamingConfig(styles=Style.CAMEL),
        (b"App:user", b"app:user_profile", b"app:UserProfile:1", b"MYAPP:USER:1"),
        (b"app:userProfile:12345", b"cart:index", b"app:01ARZ3NDEKTSV4RRFFQ69G5FAV", b"{user1000}.following"),
    ),
    "name-characters": (
        NamingConfig(characters="abcdefghijklmnopqrstuvwxyz0123456789:_-"),
        (b"App:user", b"app:user@1", b"app:{user}", "app:größe".encode()),
        (b"app:user-profile_1", b"app", b"app:1"),
    ),
    "name-whitespace": (
        NamingConfig(),
        (b"user profile 12345", b"user:1\n", b"user:\t1", "user:\u00a01".encode(), b"two words:x"),
        (b"user:1", b"user_profile"),
    ),
    "name-quotes": (NamingConfig(), (b'a"quote', b"it's", b"`x`:name"), (b"user:1",)),
    "name-control": (
        NamingConfig(),
        (b"user:\x00", b"user:\x1b[31m", b"a\\b:user", "user:\u202e1".encode(), "user:\u200b1".encode()),
        (b"user:1", b"user:\n1"),
    ),
    "name-encoding": (NamingConfig(), (b"\x80\x04\x95user", b"user:\xff"), (b"user:1", "größe:1".encode())),
    "name-empty-segment": (NamingConfig(), (b"user::1", b":user", b"user:", b":"), (b"user:1", b"user")),
    "name-long": (NamingConfig(longest=10), (b"user:123456",), (b"user:12345",)),
    "name-huge": (NamingConfig(hardest=100), (b"user:" + b"1" * 96,), (b"user:" + b"1" * 95,)),
    "name-short": (
        NamingConfig(),
        (b"a", b"ab", b"a:b:c:d:1", b"", b"u1000flw"),
        (b"abc", b"u:1000:followers", b"user:1", b"7c9e6679", b"12345"),
    ),
    "name-depth": (NamingConfig(deepest=3), (b"app:user:x1:x2",), (b"app:user:x1", b"app")),
    "name-abbreviation": (
        NamingConfig(glossary=GLOSSARY),
        (b"app:prd:1", b"app:msgQueue", b"app:sessn:1", b"app:tmp_qty", b"app:jwt"),
        (b"app:usr:1", b"app:user:1", b"app:session:id", b"app:url", b"sky:type", b"app:users:1", b"app:cfg:addr"),
    ),
    "tag-empty": (NamingConfig(), (b"foo{}{bar}", b"{}:empty"), (b"{user}:a", b"foo{bar}{}")),
    "tag-unbalanced": (
        NamingConfig(),
        (b"open{brace", b"foo{{bar}}zap", b"close}brace", b"a}b{later"),
        (b"foo{bar}{zap}", b"{user1000}.following", b"user:1"),
    ),
}  # fmt: skip


def broken(name: bytes, config: NamingConfig) -> tuple[str, ...]:
    return rule_ids(NamingRules(config).broken(name))


def test_every_rule_has_its_case_and_its_reason() -> None:
    assert tuple(CASES) == NAME_RULES
    assert all(RULES[rule].family is Family.NAMES and RULES[rule].reason.endswith(".") for rule in NAME_RULES)


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, (_, bad, _) in CASES.items() for name in bad])
def test_a_name_breaks_a_rule(rule: str, name: bytes) -> None:
    assert rule in broken(name, CASES[rule][0])


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, (_, _, good) in CASES.items() for name in good])
def test_a_name_keeps_a_rule(rule: str, name: bytes) -> None:
    assert rule not in broken(name, CASES[rule][0])


def test_usual_names_break_nothing() -> None:
    for name in (b"shop:user:42:profile", b"app:cache:product:detail:81", b"cart:index:user:7", b"queue:email:pending"):
        assert broken(name, NamingConfig()) == ()


_NAMES = st.binary(max_size=40) | st.text("abAB:_-{}. /17é\n", max_size=30).map(str.encode)


@given(_NAMES, st.sampled_from(((b":",), (b":", b"/"), (b"::",), ())))
def test_any_bytes_are_judged_the_same_alone_and_in_a_page(name: bytes, separators: tuple[bytes, ...]) -> None:
    rules = NamingRules(NamingConfig(separators=separators))
    mask = rules.broken(name)
    assert 0 <= mask <= ALL_RULES
    assert rules.of_page((name, name), (-1, -1)) == [mask, mask]


@given(_NAMES, st.integers(0, ALL_RULES))
def test_a_rule_that_is_off_breaks_nothing_and_changes_no_other(name: bytes, enabled: int) -> None:
    config = NamingConfig()
    assert NamingRules(config, enabled=enabled).broken(name) == NamingRules(config).broken(name) & enabled


@given(_NAMES)
def test_rules_about_bytes_follow_their_definition(name: bytes) -> None:
    rules = rule_ids(NamingRules(NamingConfig()).broken(name))
    try:
        name.decode()
        is_text = True
    except UnicodeDecodeError:
        is_text = False
    assert ("name-encoding" in rules) == (not is_text)
    assert ("name-quotes" in rules) == any(quote in name for quote in (b'"', b"'", b"`"))
    assert ("name-empty-segment" in rules) == (b"" in name.split(b":"))
    assert ("name-long" in rules) == (len(name) > 50)
    if name.isascii():
        spaces = any(byte in b" \t\n\r\v\f" for byte in name)
        control = any((byte < 0x20 and byte not in b"\t\n\r\v\f") or byte in (0x7F, 0x5C) for byte in name)
        assert ("name-whitespace" in rules) == spaces
        assert ("name-control" in rules) == control
        assert "name-characters" not in rules


def test_what_placeholders_of_a_pattern_stand_for_has_no_style() -> None:
    patterns = [read_pattern("app:userProfile:<name>", {}, (b":",)), read_pattern("app:User:<name>", {}, (b":",))]
    rules = NamingRules(NamingConfig(styles=Style.CAMEL, glossary=GLOSSARY), patterns)
    assert rules.broken(b"app:userProfile:Some_Name", 0) == 0
    assert rule_ids(rules.broken(b"app:userProfile:Some_Name")) == ("name-case",)
    assert rule_ids(rules.broken(b"app:User:x", 1)) == ("name-case",)
    assert rule_ids(rules.broken(b"app:userProfile:a b", 0)) == ("name-whitespace",)


def test_names_that_a_library_gives_are_not_judged() -> None:
    patterns = [read_pattern("_kombu.binding.<**>", {}, (b":",))]
    rules = NamingRules(NamingConfig(), patterns, exempt=frozenset({0}))
    assert rules.broken(b"_kombu.binding.a b", 0) == 0


def test_another_style_below_a_beginning() -> None:
    rules = NamingRules(NamingConfig(styles=Style.CAMEL, styles_below={b"PRO:": Style.UPPER}))
    assert rules.broken(b"PRO:USER:UID:18") == 0
    assert rule_ids(rules.broken(b"PRO:userProfile:18")) == ("name-case",)
    assert rule_ids(rules.broken(b"ABC:USER:UID:18")) == ("name-case",)


def test_styles_that_the_names_of_a_key_have_in_common() -> None:
    rules = NamingRules(NamingConfig())
    assert rules.styles(b"user:7:cart") & Style.CAMEL
    assert rules.styles(b"userProfile:uid:7") == Style.CAMEL
    assert rules.styles(b"user_profile:uid:7") == Style.SNAKE | Style.LOWER
    assert rules.styles(b"UserProfile:Uid:7") == Style.PASCAL
    assert rules.styles(b"userProfile:Uid:7") == Style(0)
    assert rules.styles(b"17:18") == ALL_STYLES


@pytest.mark.parametrize(
    ("name", "style"), [(b"userProfile", Style.CAMEL), (b"UserProfile", Style.PASCAL), (b"USER_ID", Style.UPPER)]
)
def test_one_style(name: bytes, style: Style) -> None:
    assert styles_of(name) == style


def test_words() -> None:
    assert words_of(b"handholdIdCardInfo") == [b"handhold", b"id", b"card", b"info"]
    assert words_of(b"user_profile-HTTPServer2") == [b"user", b"profile", b"http", b"server"]


@given(_NAMES)
def test_many_names_do_not_change_what_is_said_of_one(name: bytes) -> None:
    rules = NamingRules(NamingConfig(glossary=GLOSSARY))
    before = rules.broken(name)
    for number in range(20_000 if name == b"" else 5):
        rules.broken(b"word%s:x" % str(number).encode().translate(bytes.maketrans(b"0123456789", b"abcdefghij")))
    assert rules.broken(name) == before


MINUTE = 60_000
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "missing", "ten_minutes", "an_hour", "three_hours"),
    [
        ("30m", Breach.TTL_MISSING, None, Breach.TTL_LONG, Breach.TTL_LONG),
        ("30m..2h", Breach.TTL_MISSING, None, None, Breach.TTL_LONG),
        ("<=10m", Breach.TTL_MISSING, None, Breach.TTL_LONG, Breach.TTL_LONG),
        ("<10m", Breach.TTL_MISSING, Breach.TTL_LONG, Breach.TTL_LONG, Breach.TTL_LONG),
        (">=2h", Breach.TTL_MISSING, None, None, None),
        ("required", Breach.TTL_MISSING, None, None, None),
        ("none", None, Breach.TTL_UNEXPECTED, Breach.TTL_UNEXPECTED, Breach.TTL_UNEXPECTED),
        ("none|2h", None, None, None, Breach.TTL_LONG),
        ("none | required", None, None, None, None),
        ("5m|2h", Breach.TTL_MISSING, None, None, Breach.TTL_LONG),
    ],
)
def test_what_is_left_of_a_ttl(
    text: str, missing: Breach | None, ten_minutes: Breach | None, an_hour: Breach | None, three_hours: Breach | None
) -> None:
    ttl = read_ttl(text)
    left = (NO_TTL, 10 * MINUTE, HOUR, 3 * HOUR)
    assert [ttl.breach(one) for one in left] == [missing, ten_minutes, an_hour, three_hours]


@given(st.integers(1, 10**10), st.integers(0, 10**10))
def test_a_key_that_was_given_what_is_agreed_never_breaks_it(given_ms: int, passed_ms: int) -> None:
    ttl = read_ttl(write_duration(given_ms))
    assert ttl.breach(max(0, given_ms - passed_ms)) is None
    assert ttl.breach(given_ms + 1) is Breach.TTL_LONG


def test_too_short_times_show_only_in_many_keys() -> None:
    ttl = read_ttl("30m..2h")
    assert not ttl.is_too_short(10 * MINUTE, keys=2)
    assert ttl.is_too_short(10 * MINUTE, keys=30)
    assert not ttl.is_too_short(29 * MINUTE, keys=30)
    assert not ttl.is_too_short(30 * MINUTE, keys=1_000_000)
    assert not read_ttl("<=10m").is_too_short(1, keys=1_000_000)
    assert not ttl.is_too_short(0, keys=0)


@pytest.mark.parametrize("text", ["", "soon", "30", "30x", "2h..30m", "..", "none|", "<=", "30m..2h..3h"])
def test_what_is_no_ttl_says_how_it_is_written(text: str) -> None:
    if text == "30":
        assert read_ttl(text).high_ms == 30_000
        return
    with pytest.raises(ExpectationError):
        read_ttl(text)


def test_sizes_and_lengths() -> None:
    assert read_size("<=10K") == Bounds(None, 10_240)
    assert read_size("1K..1M") == Bounds(1_024, 1_048_576)
    assert read_length("<=10KB") == Bounds(None, 10_240)
    assert read_length("<=10k") == Bounds(None, 10_000)
    assert read_length("1..500") == Bounds(1, 500)
    assert read_length("5") == Bounds(5, 5)
    with pytest.raises(ExpectationError, match="<=1000"):
        read_length("many")


def test_types_have_their_names_and_some_that_people_use() -> None:
    assert read_type("zset") == b"zset"
    assert read_type("json") == b"ReJSON-RL"
    assert read_type("bitmap") == b"string"
    assert read_type("myModType") == b"myModType"
    with pytest.raises(ExpectationError):
        read_type("hsah")


def test_each_part_that_is_broken_has_its_bit_and_what_is_unknown_has_none() -> None:
    expected = Expectations((b"hash", b"string"), read_ttl("30m"), read_size("<=1K"), "<=1K", read_length("<=5"), "<=5")
    assert expected.broken(FoundKey()) == 0
    assert expected.broken(FoundKey(b"hash", 1, 10, 5)) == 0
    found = breaches_of(expected.broken(FoundKey(b"set", NO_TTL, 2_000, 6)))
    assert found == (Breach.TYPE, Breach.TTL_MISSING, Breach.SIZE, Breach.LENGTH)


def test_checks_say_what_is_expected_and_whether_it_is_known() -> None:
    expected = Expectations((b"hash",), read_ttl("30m"))
    kind, ttl = expected.checks(FoundKey(b"hash", NO_TTL))
    assert (kind.fact, kind.expected, kind.breach, kind.is_known) == ("type", "hash", None, True)
    assert (ttl.fact, ttl.expected, ttl.breach, ttl.is_known) == ("TTL", "30m", Breach.TTL_MISSING, True)
    assert [check.is_known for check in expected.checks(FoundKey())] == [False, False]
    assert Expectations().checks(FoundKey()) == ()
