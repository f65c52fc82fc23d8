"""Every naming rule with names that break it and names that keep it, and what holds for all names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from rtui.registry.patterns import read_pattern
from rtui.registry.rules import RULES, Family

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
    ("name", "style"),
    [(b"userProfile", Style.CAMEL), (b"UserProfile", Style.PASCAL), (b"USER_ID", Style.UPPER)],
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
