"""Reading registries: what is wrong is told with its line, its key and the nearest word that is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.registry.document import SCHEMA_PATH, schema_text
from rtui.registry.load import load_registry, read_registry
from rtui.registry.naming import DEFAULT_LONGEST, rule_ids
from rtui.registry.registry import LineIndex, RegistryError, find_registry, named_registry, shipped_names
from rtui.registry.rules import RULES, Severity

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
    registry = read_registry('[rules]\nname-whitespace = "off"')
    assert rule_ids(registry.naming.broken(b"two words")) == ()


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
