"""Reading registries, how patterns and references are written, and what is said of what is wrong in them."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.registry.document import SCHEMA_PATH, schema_text
from rtui.registry.expectations import ReferenceSource, json_steps, json_values
from rtui.registry.load import load_registry, read_registry
from rtui.registry.naming import DEFAULT_LONGEST, rule_ids
from rtui.registry.patterns import FORMS, Literal, PatternError, Values, literal_text, read_pattern
from rtui.registry.registry import (
    LineIndex,
    Registry,
    RegistryEntry,
    RegistryError,
    find_registry,
    named_registry,
    shipped_names,
)
from rtui.registry.rules import RULES, Severity
from tests.conftest import known

WRONG = {
    'tile = "x"': "rtui.toml:1: tile: there is no key tile; did you mean title?",
    "title = 1": "rtui.toml:1: title: expected str, got int",
    'separators = ["", ":"]': "rtui.toml:1: separators[1]: ",
    'separators = ":"': "rtui.toml:1: separators: expected list",
    "[naming]\nlonges = 5": "rtui.toml:2: naming.longes: there is no key longes; did you mean longest?",
    "[naming]\nlongest = 0": "rtui.toml:2: naming.longest: expected int >= 1",
    '[naming]\ncase = "camle"': "rtui.toml:2: naming.case: ",
    '[naming]\ncharacters = "z-a"': "rtui.toml:2: naming.characters: z-a is no range",
    '[rules]\nttl-mising = "warn"': (
        "rtui.toml:2: rules.ttl-mising: there is no rule ttl-mising; did you mean ttl-missing?"
    ),
    '[rules]\nttl-missing = "fatal"': (
        "rtui.toml:2: rules.ttl-missing: 'fatal' is no severity: it is off, warn or error"
    ),
    "[rules]\nkey-idle = { dys = 3 }": (
        "rtui.toml:2: rules.key-idle.dys: the rule has no parameter dys; did you mean days?"
    ),
    '[rules]\nkey-idle = { days = "x" }': "rtui.toml:2: rules.key-idle.days: 'x' can't be: it is a whole number",
    '[placeholders]\nid = "itn"': "rtui.toml:2: placeholders.id: 'itn' is no form; did you mean int?",
    "[placeholders]\nid = []": "rtui.toml:2: placeholders.id: a list has one value at least",
    '[[pattern]]\npurpose = "x"': "rtui.toml:1: pattern[1]: the key pattern is missing",
    '[[pattern]]\npattern = "a:{b"': (
        "rtui.toml:2: pattern[1].pattern: a:{b: a brace of the key itself is written twice, as {{"
    ),
    '[[pattern]]\npattern = "a"\ntyp = "hash"': "rtui.toml:3: pattern[1].typ: there is no key typ; did you mean type?",
    '[[pattern]]\npattern = "a"\ntype = "hsah"': "rtui.toml:3: pattern[1].type: 'hsah' is no type; did you mean hash?",
    '[[pattern]]\npattern = "a"\nttl = "soon"': "rtui.toml:3: pattern[1].ttl: a duration is written as 30s",
    '[[pattern]]\npattern = "a"\nsize = "big"': "rtui.toml:3: pattern[1].size: a size is written as",
    '[[pattern]]\npattern = "<id>"\nplaceholders = { ib = "int" }': (
        "rtui.toml:3: pattern[1].placeholders.ib: <ib> is not in the pattern; did you mean id?"
    ),
    '[[pattern]]\npattern = "a:<id>"\nexamples = ["b:1"]': (
        "rtui.toml:2: pattern: a:<id>: the example b:1 has no pattern"
    ),
    '[[pattern]]\npattern = "a"\nreferences = [{ from = "membr", to = "b" }]': (
        "rtui.toml:3: pattern[1].references[1].from: nothing in a key is called membr; did you mean member?"
    ),
    '[[pattern]]\npattern = "a"\nreferences = [{ from = "json", to = "b" }]': (
        "rtui.toml:3: pattern[1].references[1].from: it is written as json:NAME"
    ),
    '[[pattern]]\npattern = "a"\ntype = "hash"\nreferences = [{ from = "member", to = "b" }]': (
        "rtui.toml:4: pattern[1].references[1].from: member is of set or zset or list, and the pattern of none of them"
    ),
    '[[pattern]]\npattern = "a:<id>"\nreferences = [{ from = "value", to = "b:<ib>" }]': (
        "rtui.toml:3: pattern[1].references[1].to: <ib> is not in the pattern; did you mean id?"
    ),
    '[[pattern]]\npattern = "a"\nreferences = [{ form = "value", to = "b" }]': (
        "rtui.toml:3: pattern[1].references[1].form: there is no key form; did you mean from?"
    ),
    'include = ["celry"]': "rtui.toml:1: include[1]: there is no file celry",
    "title = ": "rtui.toml:1: it is not TOML: Invalid value",
    '[[pattern]]\n\n\npattern = "a"\npattern = "b"': "rtui.toml:5: it is not TOML: Cannot overwrite a value",
    "pattern = 3": "rtui.toml:1: pattern: each pattern begins with [[pattern]]",
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG.items(), ids=lambda text: text[:40])
def test_what_is_wrong_is_told_with_its_line_and_key(text: str, message: str) -> None:
    with pytest.raises(RegistryError) as raised:
        read_registry(text)
    assert str(raised.value).startswith(message)


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_lines() -> None:
    text = '[naming]\nlonges = 1\n\n[[pattern]]\npattern = "a"\nttl = "x"\ntyp = "y"\n\n[[pattern]]\npattern = "{"\n'
    with pytest.raises(RegistryError) as raised:
        read_registry(text)
    assert [problem.line for problem in raised.value.problems] == [2, 6, 7, 10]


def test_nothing_is_a_registry_without_patterns() -> None:
    registry = read_registry("")
    assert registry.entries == ()
    assert registry.matcher.match(b"user:1") is None
    assert registry.naming.config.longest == DEFAULT_LONGEST
    assert registry.rules.severity("ttl-missing") is RULES["ttl-missing"].severity


def test_rules_have_severities_and_parameters() -> None:
    rules = read_registry(
        '[rules]\nttl-missing = "off"\nkey-big = { severity = "error", string = "10K" }\nkey-idle = { days = 30 }'
    ).rules
    assert rules.severity("ttl-missing") is Severity.OFF
    assert rules.severity("key-big") is Severity.ERROR
    assert rules.parameter("key-big", "string") == 10_240
    assert rules.parameter("key-big", "elements") == 10_000
    assert rules.severity("key-idle") is Severity.WARN
    assert rules.parameter("lock-long", "longest") == 600_000


def test_every_default_of_a_rule_is_of_its_kind() -> None:
    for rule in RULES.values():
        for parameter in rule.parameters.values():
            parameter.value(parameter.default)


def test_a_rule_about_names_that_is_off_is_off() -> None:
    assert rule_ids(read_registry('[rules]\nname-whitespace = "off"').naming.broken(b"two words")) == ()


def test_ambiguous_patterns_are_a_warning_with_a_key() -> None:
    registry = read_registry('[[pattern]]\npattern = "<entity>:list"\n\n[[pattern]]\npattern = "user:<id>"\n')
    (warning,) = registry.warnings
    assert str(warning) == (
        "rtui.toml:5: pattern: user:<id> and <entity>:list of line 2 are equally specific: user:list has both"
    )


def test_a_pattern_that_breaks_the_naming_rules_is_a_warning() -> None:
    registry = read_registry('[naming]\ncase = "camel"\n\n[[pattern]]\npattern = "app:user_profile:<id>"\n')
    assert [str(one) for one in registry.warnings] == ["rtui.toml:5: pattern: app:user_profile:<id> breaks name-case"]


def test_included_registries_bring_patterns_and_are_not_judged(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    inner = tmp_path / "shared" / "keys.toml"
    inner.write_text('[[pattern]]\npattern = "Lib_<id>"\nnaming = false\n')
    outer = tmp_path / "rtui.toml"
    outer.write_text('include = ["shared/keys.toml"]\n[[pattern]]\npattern = "user:<id>"\n')
    registry = load_registry(outer)
    assert [(entry.pattern.text, entry.origin) for entry in registry.entries] == [
        ("user:<id>", ""),
        ("Lib_<id>", "shared/keys.toml"),
    ]
    assert registry.naming.broken(b"Lib_a b", 1) == 0
    inner.write_text('[[pattern]]\npattern = "x{"\n')
    with pytest.raises(RegistryError, match=r"shared/keys.toml:2: pattern\[1\]\.pattern"):
        load_registry(outer)
    inner.write_text('include = ["../rtui.toml"]')
    with pytest.raises(RegistryError, match="includes itself"):
        load_registry(outer)


def test_a_text_from_elsewhere_reads_no_other_file() -> None:
    assert len(read_registry('include = ["ecm"]').entries) == 5
    with pytest.raises(RegistryError, match=r"rtui\.toml:1: include\[1\]: others can't be included here"):
        read_registry('include = ["ecm"]', may_include=False)


def test_the_text_is_kept_where_it_is_all() -> None:
    assert read_registry('title = "x"').source == 'title = "x"'
    assert read_registry('include = ["ecm"]').source == ""


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="can't be read: No such file"):
        load_registry(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b'title = "x"\n\xff\xfe')
    with pytest.raises(RegistryError, match=r"binary\.toml:2: it is not UTF-8"):
        load_registry(binary)


def test_it_is_found_in_the_folder_and_above(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    above = tmp_path / "rtui.toml"
    above.touch()
    assert find_registry(deep) == above
    (deep / "rtui.toml").touch()
    assert find_registry(deep) == deep / "rtui.toml"


def test_a_name_is_of_a_registry_that_ships_or_a_path(tmp_path: Path) -> None:
    assert {"app-conventions", "project-table-id", "restaurant", "ecm", "internals"} <= set(shipped_names())
    assert named_registry("ecm", tmp_path).is_file()
    assert named_registry("mine.toml", tmp_path) == tmp_path / "mine.toml"


def test_messages_are_safe_to_show() -> None:
    with pytest.raises(RegistryError) as raised:
        read_registry('"\\u001b[31mtitel" = 1')
    assert "\x1b" not in str(raised.value)


TOML = '''# a comment [x]
title = "a # b = c"
text = """
[not.a.table]
key = 1
"""
list = [
  1, # ]
  2,
]
[naming]
"quoted key" = { a = 1, b = [2,
  3] }
a.b = 1
[[pattern]]
x = 1
[pattern.sub]
y = 2
[[pattern]]
x = '# no comment'
'''


def test_lines_of_keys_and_tables() -> None:
    index = LineIndex(TOML)
    expected: dict[tuple[str | int, ...], int] = {
        ("title",): 2,
        ("text",): 3,
        ("list",): 7,
        ("naming",): 11,
        ("naming", "quoted key"): 12,
        ("naming", "quoted key", "b"): 12,
        ("naming", "a", "b"): 14,
        ("pattern", 0): 15,
        ("pattern", 0, "x"): 16,
        ("pattern", 0, "sub", "y"): 18,
        ("pattern", 1): 19,
        ("pattern", 1, "x"): 20,
        ("nothing",): 1,
    }
    assert {path: index.line(path) for path in expected} == expected


@given(st.text("[]{}=.\"'#\nab \\", max_size=60))
def test_any_text_has_lines(text: str) -> None:
    assert 1 <= LineIndex(text).line(("a", 0, "b")) <= text.count("\n") + 1


def test_the_schema_that_ships_is_of_these_types() -> None:
    assert SCHEMA_PATH.read_text("utf-8") == schema_text(), "run: python -m rtui.registry.document"
    found = json.loads(SCHEMA_PATH.read_text("utf-8"))
    assert set(found["$defs"]["Document"]["properties"]["rules"]["properties"]) == set(RULES)


COLON = (b":",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not empty"), ("user:{id", "written twice"), ("user:id}", "written twice"),
        ("user:{}", "no placeholder"), ("user:{a<id>}}", "written twice"), ("user:{a<id>", "written twice"),
        ("user:{user id}", "no placeholder"), ("user:<a><b>", "nothing says where <a> ends"),
        ("user:<a>:<a>", "twice"), ("<**>:x:<**>", "only one placeholder"), ("<a>_<b>_<c>_<d>", "3 placeholders"),
        ("user\\q", "no escape"),
    ],
)  # fmt: skip
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


TEXT = """
[placeholders]
entity = ["user", "order"]
userId = "int"

[[pattern]]
pattern = "<entity>:list"
type = "set"
references = [{ from = "member", to = "<entity>:<member>" }]

[[pattern]]
pattern = "user:<userId>:orders"
type = "set"
references = [{ from = "member", to = "order:<member>", twin = "order:index:user:<userId>" }]

[[pattern]]
pattern = "order:index:user:<userId>"
type = "set"

[[pattern]]
pattern = "user:index:email:<email>"
type = "string"
references = [{ from = "value", to = "user:<value>" }]

[[pattern]]
pattern = "session:<id>"
type = "hash"
references = [{ from = "field:userId", to = "user:<value>" }, { from = "key", to = "lock:<id>" }]

[[pattern]]
pattern = "tags:<entity>"
references = [{ from = "member", to = "<member>" }]

[[pattern]]
pattern = "<entity>:<id>"
references = [{ from = "json:lines[].dishId", to = "dish:<value>" }]
"""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return read_registry(TEXT)


def entry(registry: Registry, key: bytes) -> tuple[RegistryEntry, dict[str, bytes]]:
    index = known(registry.matcher.match(key))
    return registry.entries[index], registry.matcher.fields(key, index)


def names(registry: Registry, key: bytes, *values: bytes) -> list[bytes]:
    found, fields = entry(registry, key)
    return [name for reference in found.references for name in reference.names(fields, values)]


def test_members_and_values_fill_the_target(registry: Registry) -> None:
    assert names(registry, b"user:list", b"1", b"2") == [b"user:1", b"user:2"]
    assert names(registry, b"user:index:email:ann@example.com", b"7") == [b"user:7"]
    assert names(registry, b"session:x", b"7") == [b"user:7", b"lock:x"]


def test_members_can_be_whole_names(registry: Registry) -> None:
    assert names(registry, b"tags:user", b"app:cache:user:1", b"x") == [b"app:cache:user:1", b"x"]


def test_a_twin_has_the_name_of_the_other_index(registry: Registry) -> None:
    found, fields = entry(registry, b"user:7:orders")
    assert found.references[0].twin_name(fields) == b"order:index:user:7"
    assert entry(registry, b"user:list")[0].references[0].twin_name({}) is None


def test_who_points_here_as_far_as_the_name_says_it(registry: Registry) -> None:
    assert [(one.key, one.value) for one in registry.incoming(b"order:17")] == [(b"order:list", b"17")]
    assert [(one.key, one.value) for one in registry.incoming(b"lock:x")] == [(b"session:x", None)]
    assert registry.incoming(b"nothing:here:at:all") == []


@given(st.integers(0, 10**9))
def test_a_reference_can_be_followed_back(number: int) -> None:
    registry = read_registry(TEXT)
    value = b"%d" % number
    (target,) = names(registry, b"order:list", value)
    assert (b"order:list", value) in [(one.key, one.value) for one in registry.incoming(target)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("roleId", [b"4"]), ("name", ["Zoë".encode()]), ("lines[].dishId", [b"1", b"x"]),
        ("address.city.code", [b"9"]), ("missing", []), ("roleId.deeper", []), ("lines", []), ("flag", []),
    ],
)  # fmt: skip
def test_values_in_json(path: str, expected: list[bytes]) -> None:
    document = {
        "roleId": 4,
        "name": "Zoë",
        "lines": [{"dishId": 1}, {"dishId": "x"}, {"other": 1}, 5],
        "address": {"city": {"code": 9}},
        "flag": True,
    }
    assert json_values(json.dumps(document).encode(), path) == expected


def test_lists_can_be_the_whole_document() -> None:
    assert json_values(b'[{"id": 1}, {"id": 2}]', "[].id") == [b"1", b"2"]


@given(st.binary(max_size=60))
def test_any_bytes_are_json_or_none(text: bytes) -> None:
    found = json_values(text, "a.b[]")
    assert found is None or isinstance(found, list)


def test_deep_json_is_refused_without_harm() -> None:
    assert json_values(b"[" * 100_000, "a") is None


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[0]", "."])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError):
        json_steps(path)


def test_every_source_says_of_which_types_it_is() -> None:
    assert all(source.placeholder is None or source.types for source in ReferenceSource)
