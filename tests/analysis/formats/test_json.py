from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtui.analysis.formats import FORMS, write
from rtui.analysis.formats.json_form import document, json_schema, write_json
from rtui.analysis.formats.json_read import LARGEST_FILE_BYTES, ReportFormatError, read_json
from rtui.analysis.formats.json_tree import DEEPEST
from rtui.analysis.report.document import KeyRecord, Node, NodeKind, Report, Stats
from rtui.keyspace.text.display import HOSTILE
from tests.analysis.formats.check_schema import SCHEMA, violations
from tests.analysis.formats.generated import reports
from tests.analysis.formats.made import MADE

slow = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", MADE)
def test_a_report_comes_back_as_it_was(name: str) -> None:
    text = write_json(MADE[name])
    assert text.isascii()
    assert text.endswith("}\n")
    assert read_json(text) == MADE[name]
    assert read_json(text.encode()) == MADE[name]


@slow
@given(reports)
def test_any_report_comes_back_as_it_was(report: Report) -> None:
    assert read_json(write_json(report)) == report


@pytest.mark.parametrize("name", MADE)
def test_files_are_what_the_schema_says(name: str) -> None:
    assert violations(json.loads(write_json(MADE[name])), SCHEMA) == []


@slow
@given(reports)
def test_any_file_is_what_the_schema_says(report: Report) -> None:
    assert violations(json.loads(write_json(report)), SCHEMA) == []


def test_the_published_schema_is_that_of_the_form() -> None:
    assert json_schema() == SCHEMA


def test_the_check_of_the_schema_sees_what_is_wrong() -> None:
    file = document(MADE["exact"])
    file["head"]["coverage"]["keys"] = "many"
    del file["head"]["made_at_s"]
    file["head"]["server"]["surprise"] = 1
    assert len(violations(file, SCHEMA)) == 3


def test_units_and_intervals_stand_beside_the_numbers() -> None:
    shop = document(MADE["estimate"])["summary"]["namespaces"][1]
    assert shop["namespace"] == "shop:"
    assert shop["stats"]["keys"] == 750_000
    assert shop["stats"]["keys_interval"] == [712_500, 787_500]
    exact = document(MADE["exact"])["summary"]["namespaces"][1]["stats"]
    assert exact["memory_bytes"] == 1_374_000_000
    assert not [name for name in exact if name.endswith("_interval")]


def test_a_name_that_is_no_text_is_null_and_quoted() -> None:
    odd = document(MADE["exact"])["summary"]["namespaces"][-1]
    assert odd["segment"] is None
    assert odd["segment_quoted"] == '"\\x1b[31mred\\xff"'


def test_what_is_denied_is_null_and_the_columns_say_why() -> None:
    file = document(MADE["denied"])
    assert file["summary"]["namespaces"][0]["stats"]["memory_bytes"] is None
    assert file["head"]["columns"]["memory"]["state"] == "denied"


def test_a_missing_optional_member_has_its_default() -> None:
    file = json.loads(write_json(MADE["exact"]))
    del file["hot"], file["keysizes"], file["head"]["notes"]
    report = read_json(json.dumps(file))
    assert (report.keysizes, report.head.notes, report.hot.lists) == ((), (), ())


def test_what_a_later_version_adds_is_passed_over() -> None:
    file = json.loads(write_json(MADE["exact"]))
    file["head"]["mood"] = file["weather"] = {"sunny": True}
    assert read_json(json.dumps(file)) == MADE["exact"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "The file is not JSON"),
        ("\x00\x01", "The file is not JSON"),
        (b"\xff\xfe\xff", "The file is not UTF-8"),
        ("[]", "This is not a report of rtui"),
        ("{}", "This is not a report of rtui"),
        ('{"format": "rtui report"}', "does not say which version"),
        ('{"format": "rtui report", "schema": true}', "does not say which version"),
        ('{"format": "rtui report", "schema": 2}', "written by a newer rtui: its schema is 2"),
        ('{"format": "rtui report", "schema": 1' + "0" * 400 + "}", "written by a newer rtui"),
        ('{"format": "rtui report", "schema": 1' + "0" * 5000 + "}", "far too many digits"),
        ('{"format": "rtui report", "schema": 1}', "head is missing"),
        ('{"format": "rtui report", "schema": 1, "head": 7}', "head should be an object, not 7"),
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
        ('{"format": NaN}', "NaN is no number"),
    ],
)  # fmt: skip
def test_another_file_is_refused_with_a_sentence(text: str | bytes, says: str) -> None:
    with pytest.raises(ReportFormatError, match=says) as refused:
        read_json(text)
    assert not HOSTILE.search(str(refused.value))


class _Huge(str):
    def __len__(self) -> int:
        return LARGEST_FILE_BYTES + 1


def test_a_huge_file_is_refused_unread() -> None:
    with pytest.raises(ReportFormatError, match="larger than 256 MiB"):
        read_json(_Huge("{}"))


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("head.coverage.keys", -1, r"head\.coverage\.keys should be between"),
        ("head.coverage.keys", 1.5, r"head\.coverage\.keys should be a whole number, not 1\.5"),
        ("head.coverage.kind", "\x1b[31m", r"head\.coverage\.kind should be one of exact, partial, estimate"),
        ("head.made_at_s", 1e300, r"head\.made_at_s should be a number"),
        ("head.columns", [], r"head\.columns should be an object, not a list"),
        ("summary.namespaces", [], "has no item for the whole keyspace"),
        ("summary.namespaces", [7], r"summary\.namespaces\[0\]\.depth is missing"),
        ("summary.namespaces.0.depth", 1, r"namespaces\[0\]\.depth does not follow"),
        ("summary.namespaces.1.depth", 3, r"namespaces\[1\]\.depth does not follow"),
        ("summary.namespaces.1.depth", 10**6, r"namespaces\[1\]\.depth should be between"),
        ("summary.namespaces.1.segment_quoted", "shop", r"segment_quoted should be text in double quotes"),
        ("summary.namespaces.1.segment_quoted", '"\\q"', "is no escape"),
        ("summary.namespaces.1.stats.ttl_keys", [1], r"ttl_keys should have 8 items, not 1"),
        ("summary.namespaces.1.stats.keys_interval", [1], r"keys_interval should be two numbers"),
        ("summary.slots.keys", [1, 2], r"summary\.slots\.keys should be a list of 16,384 numbers"),
        ("summary.big.by_memory", {}, r"summary\.big\.by_memory should be a list, not an object"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(path: str, value: Any, says: str) -> None:
    file: Any = json.loads(write_json(MADE["exact"]))
    *outer, last = path.split(".")
    here = file
    for step in outer:
        here = here[int(step) if isinstance(here, list) else step]
    here[last] = value
    with pytest.raises(ReportFormatError, match=says) as refused:
        read_json(json.dumps(file))
    assert not HOSTILE.search(str(refused.value))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@slow
@given(st.data())
def test_a_broken_file_is_refused_or_read_and_never_crashes(data: st.DataObject) -> None:
    file: Any = json.loads(write_json(MADE[data.draw(st.sampled_from(sorted(MADE)))]))
    file["summary"]["slots"]["keys"] = [0] * 16_384
    for _ in range(data.draw(st.integers(1, 3))):
        here = file
        while True:
            steps = sorted(here) if isinstance(here, dict) else list(range(min(len(here), 5)))
            if not steps:
                break
            step = data.draw(st.sampled_from(steps))
            if not isinstance(here[step], dict | list) or data.draw(st.integers(0, 4)) == 0:
                here[step] = data.draw(junk)
                break
            here = here[step]
    try:
        report = read_json(json.dumps(file))
    except ReportFormatError as error:
        assert not HOSTILE.search(str(error))
    else:
        for form in FORMS:
            assert write(report, form)


@slow
@given(st.text(max_size=40))
def test_texts_are_made_safe_on_reading(hostile: str) -> None:
    file = json.loads(write_json(MADE["exact"]))
    file["head"]["notes"] = [hostile]
    file["head"]["columns"] = {hostile: {"state": "denied", "reason": hostile}}
    report = read_json(json.dumps(file))
    for text in (*report.head.notes, *report.head.columns, *(one.reason for one in report.head.columns.values())):
        assert not HOSTILE.search(text)


def chain(depth: int) -> Node:
    """A namespace within a namespace within …"""
    stats = Stats(keys=1, share_keys=1.0)
    node = Node(b"last", b"", NodeKind.LITERAL, stats)
    for _ in range(depth - 1):
        node = Node(b"x", b":", NodeKind.LITERAL, stats, (node,))
    return Node(b"", b"", NodeKind.LITERAL, stats, (node,))


def test_a_deep_tree_is_written_and_read() -> None:
    deep = replace(MADE["exact"], summary=replace(MADE["exact"].summary, root=chain(DEEPEST)))
    assert write_json(read_json(write_json(deep))) == write_json(deep)
    for form in FORMS:
        assert write(deep, form)


def test_every_byte_of_a_key_comes_back() -> None:
    record = KeyRecord(bytes(range(256)))
    exact = MADE["exact"]
    report = replace(exact, summary=replace(exact.summary, hottest=(record,)))
    assert read_json(write_json(report)).summary.hottest == (record,)
