"""The registries that ship with rtui: what each convention says is in its file, and its rules tell good from bad."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from rtui.demo.keyspaces import KEYSPACES
from rtui.demo.writes import Argument, WriteGroup
from rtui.registry.expectations import NO_TTL, Breach, FoundKey, breaches_of
from rtui.registry.load import load_registry
from rtui.registry.naming import NAME_RULES, rule_ids
from rtui.registry.patterns import Literal
from rtui.registry.registry import SHIPPED, Registry, shipped_names
from rtui.registry.rules import RULES, Severity
from tests.conftest import known

LIBRARIES = ("celery", "django", "dramatiq", "flask-caching", "huey", "rq")

CONVENTIONS = ("app-conventions", "project-table-id", "restaurant", "ecm", "internals")

S, M, H, D = 1_000, 60_000, 3_600_000, 86_400_000


@cache
def registry(name: str) -> Registry:
    return load_registry(SHIPPED / f"{name}.toml")


@pytest.mark.parametrize("name", shipped_names())
def test_another_process_judges_names_alike(name: str) -> None:
    read = registry(name)
    there = pickle.loads(pickle.dumps(read))  # noqa: S301 - its own
    assert (there.entries, there.path, there.separators) == (read.entries, read.path, read.separators)
    assert there.rules.settings == read.rules.settings
    keys = [entry.pattern.sample() for entry in read.entries] + [b"UserName:4711", b"a b", b"{}:x"]
    found = read.matcher.match_page(keys)
    assert there.matcher.match_page(keys) == found
    assert there.naming.found_in(keys, found) == read.naming.found_in(keys, found)


def judged(
    name: str, key: str | bytes, kind: bytes | None = None, ttl: int | None = None, length: int | None = None
) -> set[str]:
    """Return every rule that a key breaks, by its name and these facts."""
    read = registry(name)
    raw = key.encode() if isinstance(key, str) else key
    index = read.matcher.match(raw)
    found = set(rule_ids(read.naming.broken(raw, -1 if index is None else index)))
    if index is None:
        return found | {"key-unregistered"}
    entry = read.entries[index]
    if entry.deprecated:
        found.add("pattern-deprecated")
    return found | {one.value for one in breaches_of(entry.expectations.broken(FoundKey(kind, ttl, None, length)))}


def key_of(read: Registry, index: int) -> bytes:
    """Return a key whose most specific pattern is this one."""
    pattern = read.entries[index].pattern
    choices: list[Sequence[bytes]] = []
    for segment in pattern.segments:
        choices += [[part.text] if isinstance(part, Literal) else part.values.samples() for part in segment.parts]
        choices.append([segment.separator])
    return next(key for key in map(b"".join, product(*choices)) if read.matcher.match(key) == index)


def test_all_five_ship() -> None:
    assert set(CONVENTIONS) <= set(shipped_names())


@pytest.mark.parametrize("name", shipped_names())
def test_a_registry_that_ships_is_read_without_a_warning(name: str) -> None:
    assert registry(name).warnings == ()
    assert registry(name).title


def test_those_of_libraries_can_be_included_together(tmp_path: Path) -> None:
    path = tmp_path / "rtui.toml"
    path.write_text(f"include = {list(LIBRARIES)}\n")
    read = load_registry(path)
    assert read.warnings == ()
    assert len(read.entries) == sum(len(registry(name).entries) for name in LIBRARIES)


@pytest.mark.parametrize("name", shipped_names())
def test_every_pattern_has_keys_and_says_what_for(name: str) -> None:
    read = registry(name)
    for index, entry in enumerate(read.entries):
        assert key_of(read, index)
        assert entry.purpose, entry.pattern.text
        assert entry.owner, entry.pattern.text


EXPECTING = [
    (name, index)
    for name in shipped_names()
    for index, entry in enumerate(load_registry(SHIPPED / f"{name}.toml").entries)
    if entry.expectations.types or entry.expectations.ttl
]


@pytest.mark.parametrize(("name", "index"), EXPECTING)
def test_every_expectation_of_a_pattern_is_kept_and_broken(name: str, index: int) -> None:
    entry = registry(name).entries[index]
    expected, ttl = entry.expectations, entry.expectations.ttl
    kind = expected.types[0] if expected.types else None
    length = None if expected.length is None else expected.length.high

    def broken(kind: bytes | None, ttl_ms: int | None, length: int | None = length) -> tuple[Breach, ...]:
        return breaches_of(expected.broken(FoundKey(kind, ttl_ms, None, length)))

    good = None if ttl is None else 1 if ttl.may_expire else NO_TTL
    assert broken(kind, good) == ()
    if kind is not None:
        assert broken(b"TSDB-TYPE", good) == (Breach.TYPE,)
    if ttl is not None and not ttl.may_be_missing:
        assert broken(kind, NO_TTL) == (Breach.TTL_MISSING,)
    if ttl is not None and not ttl.may_expire:
        assert broken(kind, 1) == (Breach.TTL_UNEXPECTED,)
    if ttl is not None and ttl.high_ms is not None:
        assert broken(kind, ttl.high_ms) == ()
        assert broken(kind, ttl.high_ms + 1) == (Breach.TTL_LONG,)
    if length is not None:
        assert broken(kind, good, length + 1) == (Breach.LENGTH,)


HASH, STRING, SET, LIST, ZSET = b"hash", b"string", b"set", b"list", b"zset"
MD5 = "d41d8cd98f00b204e9800998ecf8427e"

WRITTEN: dict[str, tuple[tuple[str, bytes, int | None, int | None], ...]] = {
    "app-conventions": (
        ("app:session:9f2c41ab", HASH, 30 * M, 2 * H),
        ("app:token:refresh:42", STRING, 7 * D, 30 * D),
        ("app:token:blacklist:8f14e45f", STRING, 5 * S, None),
        ("app:temp:otp:42", STRING, 5 * M, 10 * M),
        ("app:rate:login:10.0.0.5", STRING, 15 * M, 60 * M),
        ("app:rate:login:2001:db8::7", STRING, 15 * M, 60 * M),
        ("app:cache:prod:detail:81", HASH, 10 * M, 15 * M),
        ("app:cache:prod:detail:81", STRING, 10 * M, 15 * M),
        (f"app:cache:prod:list:{MD5}", STRING, 5 * M, 5 * M),
        (f"app:cache:prod:list:{MD5 * 2}", STRING, 5 * M, 5 * M),
        ("app:cache:prod:count", STRING, 5 * M, 5 * M),
        ("app:cache:prod:ids:all", SET, 10 * M, 10 * M),
        ("app:tags:prod", SET, NO_TTL, None),
        ("app:lock:order:81", STRING, 30 * S, 60 * S),
        ("app:queue:email:pending", LIST, NO_TTL, None),
        ("app:counter:online:users", STRING, NO_TTL, 24 * H),
        ("app:counter:online:users", STRING, 24 * H, 24 * H),
        ("app:rank:score:board:chess", ZSET, NO_TTL, None),
        ("app:analytics:daily:login:2026-11-22", STRING, NO_TTL, None),
    ),
    "project-table-id": (
        ("PRO:USER:UID:18", HASH, H, None),
        ("pro:userProfile:uid:1", STRING, H, None),
        ("PRO:FRIEND:{user1000}.following", SET, NO_TTL, None),
        ("PRO:REPORT:UID:7", STRING, H, None),
    ),
    "restaurant": (
        *((f"{entity}:7", STRING, NO_TTL, None) for entity in ("user", "role", "permission", "category", "dish")),
        *((f"{entity}:7", STRING, NO_TTL, None) for entity in ("cart", "cartDetail", "order", "orderDetail")),
        ("user:list", SET, NO_TTL, None),
        ("orderDetail:counter", STRING, NO_TTL, None),
        ("user:index:email:ann@example.com", STRING, None, None),
        ("user:7:cart", STRING, None, None),
        ("cart:index:user:7", STRING, None, None),
        ("user:7:orders", SET, None, None),
        ("order:index:user:7", SET, None, None),
        ("cart:7:items", SET, None, None),
        ("cartDetail:index:cart:7", SET, None, None),
        ("order:7:details", SET, None, None),
        ("orderDetail:index:order:7", SET, None, None),
        ("order:index:paymentRef:PAY-00FF", STRING, None, None),
        ("role:index:name:admin", STRING, None, None),
        ("role:2:permissions", SET, None, None),
        ("category:3:dishes", SET, None, None),
        ("dish:index:category:3", SET, None, None),
        ("cache:cart:7", STRING, M, None),
    ),
    "ecm": (
        ("ecm:handholdIdCardInfo:retry:R20260000000017", STRING, 30 * M, 30 * M),
        ("lock:product:verify:P00012345678", STRING, 10 * M, 10 * M),
        ("lock:redis:create_pre_loan_stage_handler:P00012345678", STRING, 30 * S, 30 * S),
        ("ecm:product:lock:verify:P00012345678", STRING, NO_TTL, None),
    ),
    "internals": (
        ("p:7", STRING, 330 * S, 6 * M),
        ("lock:p:7", STRING, 5 * S, 5 * S),
        ("hot:p:7", STRING, NO_TTL, None),
        ("{user:100}:profile", HASH, NO_TTL, None),
        ("{user:100}:posts", LIST, NO_TTL, None),
    ),
}
"""Keys as the conventions have them: the type, a TTL that is in order, and the longest one that is."""


@pytest.mark.parametrize(
    ("name", "key", "kind", "ttl", "longest"), [(name, *row) for name, rows in WRITTEN.items() for row in rows]
)
def test_keys_as_the_convention_has_them_break_nothing(
    name: str, key: str, kind: bytes, ttl: int | None, longest: int | None
) -> None:
    assert judged(name, key, kind, ttl) == set()
    entry = known(registry(name).entry_of(key.encode()))
    assert judged(name, key, b"stream", ttl) == ({"type-wrong"} if entry.expectations.types else set())
    if longest is not None:
        assert judged(name, key, kind, longest) == set()
        assert judged(name, key, kind, longest + 1) == {"ttl-too-long"}


BROKEN: dict[str, tuple[tuple[str | bytes, set[str]], ...]] = {
    "app-conventions": (
        ("MyApp_User_Profile_12345", {"name-separator", "name-case", "name-characters"}),
        ("user profile 12345", {"name-whitespace"}),
        ("MYAPP:USER:PROFILE:12345", {"name-case", "name-characters"}),
        ("a:b:c:d:1", {"name-short"}),
        ("app:cache:product-recommendations-for-returning-customers:other:81234", {"name-long"}),
        ("app:product@home:1", {"name-characters"}),
        ("app:msgs:1", {"name-abbreviation"}),
        ("app", {"name-short"}),
        ("app:a1:b2:cache:product:detail:more", {"name-depth"}),
        ("app/cache/1", {"name-separator", "name-characters"}),
        ("app::cache:1", {"name-empty-segment"}),
    ),
    "project-table-id": (
        ('PRO:NOTE:UID:"7"', {"name-quotes"}),
        ("PRO:NOTE:UID:7 8", {"name-whitespace"}),
        ("PRO:NOTE:UID:7\n8", {"name-whitespace"}),
        ("PRO:NOTE:UID:7\x1b", {"name-control"}),
        ("PRO:NOTE:UID:7\\8", {"name-control"}),
        ("PRO:note_text:uid:7", {"name-case"}),
        ("PRO/USER/UID/18", {"name-separator"}),
        ("PRO:NOTE:UID:" + "n" * 60, {"name-long"}),
        ("foo{}{bar}", {"tag-empty"}),
        ("foo{{bar}}zap", {"tag-unbalanced"}),
        ("open{brace", {"tag-unbalanced"}),
        ("x", {"name-short"}),
    ),
    "restaurant": (
        ("user:7:Cart", {"name-case"}),
        ("user_profile:1:x", {"name-case"}),
        ("order::7", {"name-empty-segment"}),
        ("user/7", {"name-separator"}),
    ),
    "ecm": (
        ("u1000flw", {"name-short"}),
        (b"ecm:archive:".ljust(1_024, b"x"), {"name-huge", "name-long"}),
        ('ecm:product:a"quote:1', {"name-quotes"}),
        ("ecm:product:two words:1", {"name-whitespace"}),
        ("ecm:product:line\nbreak:1", {"name-whitespace"}),
        ("ecm:product:back\\slash:1", {"name-control"}),
        ("object-type:1000", {"name-case"}),
        ("ecm-product-create", {"name-separator"}),
    ),
    "internals": ((b"\x80\x04pickled", {"name-encoding"}),),
}  # fmt: skip
"""Names that break a convention, and which of its rules."""


@pytest.mark.parametrize(("name", "key", "rules"), [(name, *row) for name, rows in BROKEN.items() for row in rows])
def test_names_that_break_the_convention(name: str, key: str | bytes, rules: set[str]) -> None:
    assert judged(name, key) & set(NAME_RULES) >= rules


def test_what_is_to_be_retired_is_said() -> None:
    assert judged("ecm", "ecm:product:create:42", STRING, 5 * S) == {"pattern-deprecated"}


@pytest.mark.parametrize(
    ("name", "key", "kind", "ttl", "rule"),
    [
        ("ecm", "ecm:product:create:42", STRING, 5 * S + 1, "ttl-too-long"),
        ("app-conventions", "app:lock:order:81", STRING, NO_TTL, "ttl-missing"),
        ("app-conventions", "app:cache:prod:count", STRING, NO_TTL, "ttl-missing"),
        ("ecm", "lock:product:verify:P00012345678", STRING, NO_TTL, "ttl-missing"),
        ("internals", "lock:p:7", STRING, NO_TTL, "ttl-missing"),
        ("internals", "p:7", STRING, NO_TTL, "ttl-missing"),
    ],
)
def test_locks_and_cached_keys_without_ttl_or_with_a_long_one(
    name: str, key: str, kind: bytes, ttl: int, rule: str
) -> None:
    assert judged(name, key, kind, ttl) - {"pattern-deprecated"} == {rule}


def test_a_key_that_nobody_entered_is_unregistered() -> None:
    assert "key-unregistered" in judged("ecm", "ecm:migration:cursor")
    assert registry("ecm").rules.severity("key-unregistered") is Severity.ERROR


def test_a_string_over_ten_kilobytes_is_too_long() -> None:
    assert judged("project-table-id", "PRO:REPORT:UID:7", STRING, H, length=10_240) == set()
    assert judged("project-table-id", "PRO:REPORT:UID:7", STRING, H, length=10_241) == {"length-out-of-range"}
    assert registry("project-table-id").rules.parameter("key-big", "string") == 10_240


REFERENCES = (
    ("user:list", "7", "user:7"),
    ("user:index:email:ann@example.com", "7", "user:7"),
    ("user:7:cart", "3", "cart:3"),
    ("cart:index:user:7", "3", "cart:3"),
    ("user:7:orders", "9", "order:9"),
    ("order:index:user:7", "9", "order:9"),
    ("cart:3:items", "5", "cartDetail:5"),
    ("cartDetail:index:cart:3", "5", "cartDetail:5"),
    ("order:9:details", "6", "orderDetail:6"),
    ("orderDetail:index:order:9", "6", "orderDetail:6"),
    ("order:index:paymentRef:PAY-1", "9", "order:9"),
    ("role:index:name:admin", "1", "role:1"),
    ("role:1:permissions", "4", "permission:4"),
    ("category:2:dishes", "8", "dish:8"),
    ("dish:index:category:2", "8", "dish:8"),
    ("user:7", "4", "role:4"),
    ("cart:3", "7", "user:7"),
    ("order:9", "7", "user:7"),
    ("dish:8", "2", "category:2"),
)

TWINS = (
    ("user:7:cart", "cart:index:user:7"),
    ("user:7:orders", "order:index:user:7"),
    ("cart:3:items", "cartDetail:index:cart:3"),
    ("order:9:details", "orderDetail:index:order:9"),
    ("category:2:dishes", "dish:index:category:2"),
)


@pytest.mark.parametrize(("key", "value", "target"), REFERENCES)
def test_references_of_the_restaurant(key: str, value: str, target: str) -> None:
    read = registry("restaurant")
    index = known(read.matcher.match(key.encode()))
    fields = read.matcher.fields(key.encode(), index)
    names = [name for one in read.entries[index].references for name in one.names(fields, [value.encode()])]
    assert target.encode() in names
    assert all(read.entry_of(name) is not None for name in names)


@pytest.mark.parametrize(("one", "other"), [*TWINS, *(pair[::-1] for pair in TWINS)])
def test_indexes_that_are_kept_twice(one: str, other: str) -> None:
    read = registry("restaurant")
    index = known(read.matcher.match(one.encode()))
    (reference,) = read.entries[index].references
    assert reference.twin_name(read.matcher.fields(one.encode(), index)) == other.encode()


def test_both_fields_of_what_belongs_to_two_refer() -> None:
    for key, targets in (("cartDetail:5", {"cart:3", "dish:3"}), ("orderDetail:6", {"order:3", "dish:3"})):
        entry = known(registry("restaurant").entry_of(key.encode()))
        assert {name.decode() for one in entry.references for name in one.names({}, [b"3"])} == targets


def test_tags_hold_whole_names() -> None:
    entry = known(registry("app-conventions").entry_of(b"app:tags:prod"))
    assert entry.references[0].names({}, [b"app:cache:prod:detail:81"]) == [b"app:cache:prod:detail:81"]


def test_a_lock_and_an_expiry_in_the_value_guard_hot_keys() -> None:
    read = registry("internals")
    product_, hot = read.entry_of(b"p:7"), read.entry_of(b"hot:p:7")
    assert product_ is not None
    assert known(product_.lock).filled({"id": b"7"}) == b"lock:p:7"
    assert hot is not None
    assert known(hot.expires_in)[1] == "expire_at"


RULED: dict[str, set[str]] = {
    "app-conventions": {"ttl-missing", "lock-without-ttl", "command-banned", "name-abbreviation"},
    "project-table-id": {"name-mixed-case", "key-big", "expiry-cliff", "tag-skew", "command-banned", "cross-slot"},
    "restaurant": {"reference-dangling", "reference-twin", "ttl-missing"},
    "ecm": {"key-unregistered", "pattern-deprecated", "eviction-policy", "command-banned"},
    "internals": {
        "null-cached", "expiry-cliff", "hot-key-expiring", "lock-without-ttl", "key-big", "memory-fragmented",
        "cross-slot", "command-slow", "fork-slow", "output-buffers",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CONVENTIONS)
def test_rules_about_whole_keyspaces_are_on(name: str) -> None:
    assert RULED[name] <= set(RULES)
    assert all(registry(name).rules.severity(rule) is not Severity.OFF for rule in RULED[name])


KEYS = 2_000

TYPES = {
    "SET": b"string", "HSET": b"hash", "SADD": b"set", "LPUSH": b"list", "RPUSH": b"list", "ZADD": b"zset",
    "XADD": b"stream", "PFADD": b"string", "RESTORE": b"string",
}  # fmt: skip
"""What the commands that create sample keys make."""


class Judged(NamedTuple):
    keys: int
    unregistered: set[bytes]
    names: dict[str, set[bytes]]
    """The keys that break each rule about names."""
    broken: set[tuple[str, str]]
    """Patterns and what of their expectations is broken."""


def raw(argument: Argument) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()


def found_in(groups: Iterator[WriteGroup]) -> dict[bytes, FoundKey]:
    """The keys that writes create, with type, TTL and the length of a string."""
    found: dict[bytes, FoundKey] = {}
    for group in groups:
        for write in (*group.own, *group.shared):
            command, key = str(write[0]), raw(write[1])
            if command == "PEXPIRE":
                found[key] = found[key]._replace(ttl_ms=int(write[2]))
            elif command in TYPES and (command == "SET" or key not in found):
                length = len(raw(write[2])) if command == "SET" else None
                ttl_ms = int(write[4]) if "PX" in write[3:4] else NO_TTL
                found[key] = FoundKey(TYPES[command], ttl_ms, None, length)
    return found


@cache
def judged_keys(name: str, *, is_good: bool = False) -> Judged:
    registry = load_registry(SHIPPED / f"{name}.toml")
    write_groups, _ = KEYSPACES[name]
    found = found_in(write_groups(Random(1), KEYS, is_good=is_good))
    keys = sorted(found)
    indices = registry.matcher.match_page(keys)
    unregistered, names, broken = set[bytes](), dict[str, set[bytes]](), set[tuple[str, str]]()
    for key, index, mask in zip(keys, indices, registry.naming.of_page(keys, indices), strict=True):
        for rule in rule_ids(mask):
            names.setdefault(rule, set()).add(key)
        if index < 0:
            unregistered.add(key)
            continue
        entry = registry.entries[index]
        for breach in breaches_of(entry.expectations.broken(found[key])):
            broken.add((entry.pattern.text, breach.value))
    return Judged(len(keys), unregistered, names, broken)


UPPER = {b"App:Session:9f8e", b"MYAPP:USER:PROFILE:12345", b"MyApp_User_Profile_12345"}

NAMES: dict[str, dict[str, set[bytes]]] = {
    "app-conventions": {
        "name-case": UPPER,
        "name-characters": UPPER,
        "name-separator": {b"MyApp_User_Profile_12345"},
        "name-short": {b"a:b:c:d:1"},
        "name-long": {b"app:cache:product-recommendations-for-returning-customers:detail:81234"},
        "name-whitespace": {b"user profile 12345"},
    },
    "project-table-id": {
        "tag-unbalanced": {b"close}brace{later", b"foo{{bar}}zap", b"open{brace"},
        "tag-empty": {b"foo{}{bar}", b"{}:empty"},
        "name-quotes": {b'PRO:NOTE:UID:"7"'},
        "name-whitespace": {b"PRO:NOTE:UID:7 8"},
    },
    "restaurant": {},
    "ecm": {
        "name-whitespace": {b"ecm:product:line\nbreak:1", b"ecm:product:two words:1"},
        "name-characters": {b"comment:1234:reply.to"},
        "name-long": {b"ecm:archive:".ljust(1_024, b"x")},
        "name-huge": {b"ecm:archive:".ljust(1_024, b"x")},
        "name-quotes": {b'ecm:product:a"quote:1'},
        "name-case": {b"object-type:1000"},
        "name-separator": {b"tmp_fix_2019"},
        "name-short": {b"u1000flw"},
    },
    "internals": {},
}

PLANTED_DEFECTS: dict[str, set[tuple[str, str]]] = {
    "app-conventions": {("app:cache:<entity>:detail:<id>", "ttl-missing"), ("app:lock:<resource>:<id>", "ttl-missing")},
    "project-table-id": {
        ("<project>:<table>:<column>:<value>", "ttl-missing"),
        ("PRO:REPORT:UID:<number>", "length-out-of-range"),
    },
    "restaurant": {("cache:cart:<userId>", "ttl-missing")},
    "ecm": {("lock:redis:create_pre_loan_stage_handler:<productSerialNid>", "ttl-missing")},
    "internals": {("p:<id>", "ttl-missing"), ("lock:p:<id>", "ttl-missing")},
}


@pytest.mark.parametrize("name", NAMES)
def test_only_the_names_that_were_planted_break_a_rule(name: str) -> None:
    assert judged_keys(name).keys >= KEYS
    assert judged_keys(name).names == NAMES[name]


@pytest.mark.parametrize("name", NAMES)
def test_only_what_was_planted_is_not_as_expected(name: str) -> None:
    assert judged_keys(name).broken == PLANTED_DEFECTS[name]


def test_keys_that_nobody_entered_are_unregistered() -> None:
    assert judged_keys("restaurant").unregistered == set()
    assert {b"u1000flw", b"tmp_fix_2019", b"ecm:migration:cursor"} <= judged_keys("ecm").unregistered
    assert len(judged_keys("ecm").unregistered) == 10


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wrong_on_a_good_day(name: str) -> None:
    good = judged_keys(name, is_good=True)
    assert good.keys >= KEYS
    assert good.unregistered <= {b"events:orders", b"hot:config", b"limits:api:day", b"stats:users:seen"}
    assert (good.names, good.broken) == ({}, set())
