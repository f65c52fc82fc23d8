"""Files that programs read: reports and found keys as JSON and CSV, and samples, written and read again."""

from __future__ import annotations

import csv
import json
from io import StringIO
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.columns import ALL_COLUMNS
from rtui.analysis.facts import Reason
from rtui.analysis.formats import FORMS
from rtui.analysis.formats.json import (
    DEEPEST,
    LARGEST_FILE_BYTES,
    ReportFormatError,
    document,
    name_text,
    read_headline,
    read_json,
    write_json,
)
from rtui.analysis.formats.result_rows import FIELD_NAMES, FOUND_FORMATS, FoundKeys
from rtui.analysis.formats.samples import (
    Masker,
    SamplesFormatError,
    SamplesHeader,
    header_line,
    is_samples,
    read_samples,
    sample_line,
)
from rtui.analysis.health.possible import with_possible
from rtui.analysis.health.sample import (
    FIGURES,
    ClientFigures,
    CommandStats,
    Database,
    LatencyEvent,
    LoggedCommand,
    Missing,
    Replica,
    Sample,
    Source,
    only_new,
    with_earlier,
)
from rtui.analysis.report.document import KeyRecord, KeySizes, Node, NodeKind, Report, Stats
from rtui.keyspace.text.display import HOSTILE, SafeText, display_text, unescape
from tests.analysis.formats.check_schema import SCHEMA, generated, violations
from tests.analysis.formats.made import MADE, reports
from tests.conftest import examples
from tests.tui.visiting import check_text

slow = settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", MADE)
def test_a_report_comes_back_as_it_was(name: str) -> None:
    text = write_json(MADE[name])
    assert text.isascii()
    assert text.endswith("}\n")
    assert read_json(text) == MADE[name]
    assert read_json(text.encode()) == MADE[name]


_BRACES = str.maketrans("<>", "{}")


def _of_earlier_version(file: str) -> str:
    """A file of today as version 2 had it, with the placeholders of patterns in braces."""
    contents = json.loads(file)
    contents["schema"], summary = 2, contents["summary"]
    for one in summary["namespaces"]:
        if one["kind"] == "pattern":
            one["segment"] = one["segment"].translate(_BRACES)
    for one in (*summary["expiry"]["timelines"], *summary["expiry"]["cliffs"]):
        one["path"], one["label"] = [name.translate(_BRACES) for name in one["path"]], one["label"].translate(_BRACES)
    for one in (summary["registry"] or {"entries": []})["entries"]:
        one["pattern"] = one["pattern"].translate(_BRACES)
    for rule in (summary["naming"] or {"rules": []})["rules"]:
        for place in rule["places"]:
            place["pattern"] = place["pattern"].translate(_BRACES)
    return json.dumps(contents)


@pytest.mark.parametrize("name", MADE)
def test_reports_of_earlier_versions_are_read_as_those_of_today(name: str) -> None:
    text = write_json(MADE[name])
    old = _of_earlier_version(text)
    assert read_json(old) == MADE[name]
    assert read_headline(old.encode()) == read_headline(text.encode())


def test_segments_of_earlier_versions_that_are_names_stay() -> None:
    file = json.loads(_of_earlier_version(write_json(MADE["exact"])))
    first = file["summary"]["namespaces"][1]
    first["segment"] = "{id}"
    assert read_json(json.dumps(file)).summary.root.children[0].name == b"{id}"
    first["kind"] = "pattern"
    assert read_json(json.dumps(file)).summary.root.children[0].name == b"<id>"
    first["segment"] = "<id>_{n}"
    assert read_json(json.dumps(file)).summary.root.children[0].name == b"\\<id>_<n>"


@pytest.mark.parametrize("name", MADE)
def test_files_are_what_the_schema_says(name: str) -> None:
    assert violations(json.loads(write_json(MADE[name])), SCHEMA) == []


@pytest.mark.slow
@slow
@given(reports)
def test_any_report_comes_back_as_it_was_from_a_file_that_is_what_the_schema_says(report: Report) -> None:
    file = write_json(report)
    assert read_json(file) == report
    assert violations(json.loads(file), SCHEMA) == []


def test_the_published_schema_is_that_of_the_form() -> None:
    assert generated() == SCHEMA


def test_the_check_of_the_schema_sees_what_is_wrong() -> None:
    file = document(MADE["exact"])
    file["head"]["coverage"]["keys"] = "many"
    del file["head"]["made_at_s"]
    file["head"]["server"]["surprise"] = 1
    assert len(violations(file, SCHEMA)) == 3


def test_units_and_intervals_stand_beside_the_numbers() -> None:
    shop = document(MADE["estimate"])["summary"]["namespaces"][1]
    assert shop["namespace"] == "shop:"
    assert shop["stats"]["keys"] == {"low": 712_500, "value": 750_000, "high": 787_500}
    exact = document(MADE["exact"])["summary"]["namespaces"][1]["stats"]
    assert exact["memory_bytes"] == 1_374_000_000
    assert exact["keys"] == 750_000


def test_a_bound_that_is_not_known_is_left_out() -> None:
    assert document(MADE["hostile"])["summary"]["namespaces"][0]["stats"]["keys"] == {"low": 3, "value": 3}


def test_a_name_that_is_no_text_is_escaped() -> None:
    assert document(MADE["exact"])["summary"]["namespaces"][-1]["segment"] == "\\x1b[31mred\\xff"


@given(st.binary(max_size=20) | st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_names_are_safe_and_none_is_lost(name: bytes) -> None:
    text = name_text(name)
    assert not HOSTILE.search(text)
    assert unescape(f'"{text}"'.encode()) == name


@given(st.text(st.characters(categories=["L", "N"]), max_size=20).filter(lambda text: not HOSTILE.search(text)))
def test_names_in_any_script_are_read_as_they_are(name: str) -> None:
    assert name_text(name.encode()) == name


def test_what_is_denied_is_null_and_the_columns_say_why() -> None:
    file = document(MADE["denied"])
    assert file["summary"]["namespaces"][0]["stats"]["memory_bytes"] is None
    assert file["head"]["columns"]["memory"]["state"] == "denied"


def test_a_missing_optional_member_has_its_default() -> None:
    file = json.loads(write_json(MADE["exact"]))
    del file["hot"], file["keysizes"], file["head"]["notes"]
    report = read_json(json.dumps(file))
    assert (report.keysizes, report.head.notes, report.hot.lists) == ((), (), ())


def test_a_report_without_columns_has_asked_everything_of_every_key() -> None:
    file = json.loads(write_json(MADE["sampled"]))
    assert file["head"]["scope"]["columns"]["idle"] == "sampled"
    del file["head"]["scope"]["columns"]
    assert read_json(json.dumps(file)).head.scope.columns == ALL_COLUMNS


def test_what_a_later_version_adds_and_an_earlier_one_had_is_passed_over() -> None:
    file = json.loads(write_json(MADE["exact"]))
    file["head"]["engine"] = "compiled"
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
        ('{"format": "rtui report", "schema": 4}', "written by a newer rtui: its schema is 4"),
        ('{"format": "rtui report", "schema": 1' + "0" * 400 + "}", "written by a newer rtui"),
        ('{"format": "rtui report", "schema": 1' + "0" * 5000 + "}", "far too many digits"),
        ('{"format": "rtui report", "schema": 1}', "of an older version"),
        ('{"format": "rtui report", "schema": 3}', "head is missing"),
        ('{"format": "rtui report", "schema": 3, "head": 7}', "head should be object, not int"),
        ("[" * 100_000 + "]" * 100_000, "This is not a report of rtui"),
        ('{"format": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
        ('{"format": "rtui report", "schema": 3, "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
        ('{"format": NaN}', "The file is not JSON"),
        ('{"format": "rtui report", "schema": 3, "head": {"made_at_s": 1e999}}', "made_at_s"),
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
        ("head.coverage.keys", -1, r"head\.coverage\.keys should be int >= 0"),
        ("head.coverage.keys", 2**63, r"head\.coverage\.keys should be int <= 9223372036854775807"),
        ("head.coverage.keys", 10**30, r"head\.coverage\.keys should be int <= 9223372036854775807"),
        ("head.coverage.keys", 1.5, r"head\.coverage\.keys should be int, not float"),
        ("head.coverage.keys", True, r"head\.coverage\.keys should be int, not bool"),
        ("head.coverage.kind", "\x1b[31m", r"head\.coverage\.kind should be one of the words"),
        ("head.made_at_s", 1e300, r"head\.made_at_s should be float <= 1\.84"),
        ("head.columns", [], r"head\.columns should be object, not array"),
        ("head.notes", [7], r"head\.notes\[0\] should be text, not int"),
        ("summary.namespaces", [], "has no item for the whole keyspace"),
        ("summary.namespaces", [7], r"summary\.namespaces\[0\] should be object, not int"),
        ("summary.namespaces", [{}], r"summary\.namespaces\[0\]\.depth is missing"),
        ("summary.namespaces.0.depth", 1, r"namespaces\[0\]\.depth does not follow"),
        ("summary.namespaces.1.depth", 3, r"namespaces\[1\]\.depth does not follow"),
        ("summary.namespaces.1.depth", 10**6, r"namespaces\[1\]\.depth should be int <= 400"),
        ("summary.namespaces.1.stats.ttl_keys", [1], r"ttl_keys should be array of length >= 8"),
        ("summary.namespaces.1.stats.types", [7], r"stats\.types\[0\] should be array, not int"),
        ("summary.slots.keys", [1, 2], r"summary\.slots\.keys should be a list of 16,384 numbers"),
        ("summary.slots.keys", [-1] * 16_384, r"summary\.slots\.keys should be numbers of 64 bits"),
        ("summary.slots.keys", [1.0] * 16_384, r"summary\.slots\.keys should be a list of 16,384 numbers"),
        ("summary.big.by_memory", {}, r"summary\.big\.by_memory should be array, not object"),
        ("summary.namespaces.1.segment", "\\q", "is no escape"),
        ("summary.namespaces.1.segment", None, r"segment should be text, not NoneType"),
        ("summary.namespaces.1.stats.keys", {"value": 1}, r"stats\.keys\.low is missing"),
        ("summary.namespaces.1.stats.keys", {"low": "x", "value": 1}, r"stats\.keys\.low should be float, not str"),
        ("summary.big.over_threshold", {"\\q": 1}, "is no escape"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(path: str, value: Any, says: str) -> None:
    check_refused(document(MADE["exact"]), path, value, says)


def check_refused(file: Any, path: str, value: Any, says: str) -> None:
    """Check that a file with another value at one place is refused with a sentence that is safe to show."""
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


@pytest.mark.slow
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
        for write in FORMS.values():
            assert write(report)


@pytest.mark.slow
@slow
@given(st.text(max_size=40))
def test_texts_are_made_safe_on_reading(hostile: str) -> None:
    file = document(MADE["exact"])
    file["head"]["notes"] = [hostile]
    file["head"]["columns"] = {hostile: {"state": "denied", "reason": hostile}}
    report = read_json(json.dumps(file))
    for text in (*report.head.notes, *report.head.columns, *(one.reason for one in report.head.columns.values())):
        assert not HOSTILE.search(text)


def chain(depth: int) -> Node:
    stats = Stats(keys=1, share_keys=1.0)
    node = Node(b"last", b"", NodeKind.LITERAL, stats)
    for _ in range(depth - 1):
        node = Node(b"x", b":", NodeKind.LITERAL, stats, (node,))
    return Node(b"", b"", NodeKind.LITERAL, stats, (node,))


def test_a_deep_tree_is_written_and_read() -> None:
    deep = replace(MADE["exact"], summary=replace(MADE["exact"].summary, root=chain(DEEPEST)))
    assert write_json(read_json(write_json(deep))) == write_json(deep)
    for write in FORMS.values():
        assert write(deep)


def test_every_byte_of_a_key_comes_back() -> None:
    record = KeyRecord(bytes(range(256)))
    exact = MADE["exact"]
    report = replace(exact, summary=replace(exact.summary, hottest=(record,)))
    assert read_json(write_json(report)).summary.hottest == (record,)


ROW_NUMBERS = ("ttl_ms", "memory_bytes", "length", "idle_s", "frequency", "slot")
COUNTS = st.none() | st.integers(0, 1 << 50)
RECORDS = st.lists(
    st.builds(
        KeyRecord,
        key=st.binary(max_size=20) | st.sampled_from([b"=1", b"a|b", b"`", b"\n", "é".encode(), b"-1", b""]),
        key_type=st.none() | st.sampled_from([b"hash", b"=odd", b"ReJSON-RL"]),
        memory_bytes=COUNTS,
        length=COUNTS,
        ttl_ms=st.none() | st.integers(-1, 1 << 40),
        idle_s=COUNTS,
        frequency=st.none() | st.integers(0, 255),
        encoding=st.none() | st.sampled_from([b"listpack", b"@x"]),
    ),
    max_size=8,
)


def written_rows(form: str, records: list[KeyRecord], count: int | None = None) -> str:
    parts: list[str | bytes] = []
    output = FoundKeys(parts.append, form, "a b", list(FIELD_NAMES))
    for start in range(0, len(records), 3):
        output.write(records[start : start + 3])
    is_exact = count is None
    output.end(len(records) if count is None else count, is_exact=is_exact, notes=[SafeText("A note.")])
    return b"".join(part if isinstance(part, bytes) else part.encode() for part in parts).decode("utf-8", "replace")


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text, newline="")))


@given(RECORDS)
def test_every_format_has_the_same_columns_and_values(records: list[KeyRecord]) -> None:
    document = json.loads(written_rows("json", records))
    *lines, said = map(json.loads, written_rows("jsonl", records).splitlines())
    assert lines == document["keys"]
    assert said == {name: document[name] for name in ("listed", "count", "at_least", "complete", "notes")}
    *rows, last = rows_of(written_rows("csv", records))
    names = ["key", "key_quoted", *FIELD_NAMES.values()]
    assert [*last] == [*names, "coverage", "notes"]
    assert (last["coverage"], last["notes"]) == ("exact", "A note.")
    head, _, *table = written_rows("md", records).split("\n\n", maxsplit=1)[0].splitlines()
    assert head == f"| {' | '.join(names)} |"
    assert len(rows) == len(table) == len(lines) == len(records)
    for record, line, row in zip(records, lines, rows, strict=True):
        assert list(line) == names
        assert unescape(row["key_quoted"].encode()) == unescape(line["key_quoted"].encode()) == record.key
        assert not any(row[name].startswith(("=", "+", "@", "-")) for name in ("key", "type", "encoding"))
        for name in ROW_NUMBERS:
            number: Any = line[name]
            assert number is None or isinstance(number, int)
            assert row[name] == ("" if number is None else str(number))
    for line in (head, *table):
        check_text(line)


@given(RECORDS)
@example([KeyRecord(key=b"a\0b"), KeyRecord(key=b"b")])
def test_raw_has_every_name_that_a_nul_can_end_and_text_a_line_each(records: list[KeyRecord]) -> None:
    parts: list[str | bytes] = []
    output = FoundKeys(parts.append, "raw", "", [])
    output.write(records)
    output.end(len(records), is_exact=True, notes=())
    names = b"".join(part for part in parts if isinstance(part, bytes)).split(b"\0")[:-1]
    assert names == [one.key for one in records if b"\0" not in one.key]
    assert output.left_out == len(records) - len(names)
    assert len(written_rows("text", records).splitlines()) == len(records)


def test_a_part_of_the_keys_is_no_count() -> None:
    records = [KeyRecord(key=b"a"), KeyRecord(key=b"b")]
    for text in (written_rows("json", records, 7), written_rows("jsonl", records, 7).splitlines()[-1]):
        counts = [json.loads(text)[name] for name in ("listed", "count", "at_least", "complete")]
        assert counts == [2, None, 7, False]
    assert rows_of(written_rows("csv", records, 7))[-1]["coverage"] == "partial"
    assert {form for form in FOUND_FORMATS if "A note." in written_rows(form, records)} == {
        "json",
        "jsonl",
        "csv",
        "md",
    }


HEADER = SamplesHeader(began_ms=1_790_000_000_000, server="10.0.0.5:6379")
NUMBERS = st.integers(0, (1 << 63) - 1)
TEXTS = st.text(max_size=12).map(display_text)
NAMES = st.binary(max_size=12)
ENTRIES = st.lists(
    st.builds(LoggedCommand, NUMBERS, NUMBERS, NUMBERS, st.lists(NAMES, min_size=1, max_size=3).map(tuple), NAMES),
    max_size=3,
).map(tuple)

SAMPLES = st.builds(
    Sample,
    st.just(1),
    st.just("10.0.0.5:6379"),
    info=st.dictionaries(st.sampled_from(("used_memory", "role", "hz")), NUMBERS | TEXTS | st.floats(0, 1e9)),
    databases=st.dictionaries(st.integers(0, 15), st.builds(Database, NUMBERS, NUMBERS), max_size=2),
    commands=st.dictionaries(
        st.sampled_from(("GET", "CONFIG|GET")),
        st.builds(CommandStats, NUMBERS, NUMBERS, percentiles_us=st.just({"50": 1.0})),
    ),
    errors=st.dictionaries(TEXTS, NUMBERS, max_size=2),
    replicas=st.lists(st.builds(Replica, NAMES, TEXTS), max_size=1).map(tuple),
    slow=ENTRIES,
    large_replies=ENTRIES,
    latency=st.lists(st.builds(LatencyEvent, TEXTS, NUMBERS, NUMBERS, NUMBERS, st.just(((1, 2),)))).map(tuple),
    clients=st.lists(st.builds(ClientFigures, st.none() | NUMBERS, NAMES, NAMES), max_size=2).map(tuple),
    settings=st.dictionaries(st.sampled_from(("save", "hz")), TEXTS),
    key_sizes=st.lists(st.builds(KeySizes, TEXTS, st.just(((1, 5),))), max_size=1).map(tuple),
    sources=st.sets(st.sampled_from(Source)).map(lambda chosen: tuple(one for one in Source if one in chosen)),
    missing=st.dictionaries(st.sampled_from(Source), st.builds(Missing, st.sampled_from(Reason), TEXTS), max_size=2),
)


def whole(samples: list[Sample]) -> list[Sample]:
    """The samples as a probe gives them: each with what those before it said."""
    found: list[Sample] = []
    for at_ms, sample in enumerate(samples):
        told = only_new(Sample(**{name: getattr(sample, name) for name in sample.__struct_fields__} | {"at_ms": at_ms}))
        found.append(with_earlier(told, found[-1]) if found else told)
    return found


def written(samples: list[Sample]) -> bytes:
    return (header_line(HEADER) + "".join(sample_line(one, HEADER) for one in samples)).encode()


@given(st.lists(SAMPLES, max_size=4))
def test_what_is_written_is_read_again_but_for_clients_of_earlier_samples(samples: list[Sample]) -> None:
    expected = whole([with_possible(one) for one in samples])
    data = written(expected)
    assert is_samples(data)
    found = read_samples(data.splitlines(keepends=True))
    assert found.header == HEADER
    assert (found.unread, found.left_out) == (0, 0)
    read = found.nodes.get("10.0.0.5:6379", ())
    assert [one.at_ms for one in read] == [one.at_ms for one in expected]
    assert read[-1:] == tuple(expected[-1:])
    for one, other in zip(read, expected, strict=True):
        for name in {*FIGURES.values(), "info", "missing", "sources"} - {"clients"}:
            assert getattr(one, name) == getattr(other, name), name


@given(st.lists(SAMPLES, min_size=1, max_size=3), st.data())
def test_a_file_that_is_cut_is_read_up_to_there(samples: list[Sample], data: st.DataObject) -> None:
    whole_file = written(whole(samples))
    cut = whole_file[: data.draw(st.integers(len(header_line(HEADER).encode()), len(whole_file)))]
    found = read_samples(cut.splitlines(keepends=True))
    read = sum(map(len, found.nodes.values()))
    assert read in (cut.count(b"\n") - 1, cut.count(b"\n"))
    assert bool(found.unread) == (not cut.endswith(b"\n") and read == cut.count(b"\n") - 1)


@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_any_bytes_are_read_or_refused(lines: list[bytes], has_header: bool) -> None:
    try:
        read_samples([header_line(HEADER).encode()] * has_header + lines)
    except SamplesFormatError:
        assert not has_header


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b'{"format":"rtui report"}', b'{"format":"rtui samples","schema":9}']
)
def test_other_files_are_refused(line: bytes) -> None:
    with pytest.raises(SamplesFormatError):
        read_samples([line])


def test_texts_of_a_file_are_safe() -> None:
    line = rb'{"kind":"sample","at":1,"node":"a\u001b[31m","settings":{"save\u001b":"\u202e"}}'
    (node,) = read_samples([header_line(HEADER).encode(), line]).nodes
    assert "\x1b" not in node
    (sample,) = read_samples([header_line(HEADER).encode(), line]).nodes[node]
    assert all(text.isprintable() for pair in sample.settings.items() for text in pair)


def test_of_a_long_file_samples_in_between_are_left_out() -> None:
    found = read_samples(written(whole([Sample(0, "10.0.0.5:6379")] * 1_000)).splitlines(keepends=True))
    times = [one.at_ms for one in found.nodes["10.0.0.5:6379"]]
    assert (times[0], times[-1]) == (0, 999)
    assert len(times) + found.left_out == 1_000
    assert found.left_out
    assert all(earlier < later for earlier, later in pairwise(times))


def addresses_of(sample: Sample) -> list[bytes]:
    return [*(one.address for one in sample.clients), *(one.address for one in sample.slow)]


@given(SAMPLES)
def test_masked_samples_have_no_addresses(sample: Sample) -> None:
    masker = Masker()
    masked = masker.masked(sample)
    assert masked == masker.masked(sample)
    for address in (*addresses_of(masked), *(one.address for one in masked.large_replies)):
        assert address == b"" or address.startswith(b"client-")
    assert all(client.id is None for client in masked.clients)
    assert len(set(addresses_of(sample))) == len(set(addresses_of(masked)))


def test_events_of_other_kinds_are_passed_over() -> None:
    sample = Sample(HEADER.began_ms + 5, "a:1")
    lines = [header_line(HEADER), '{"kind":"end","at":9}\n', sample_line(sample, HEADER)]
    assert read_samples([one.encode() for one in lines]).nodes == {"a:1": (sample,)}
    assert read_samples([header_line(HEADER).encode(), b'{"at":9}\n']).unread == 2


def test_a_line_is_an_event_as_in_recorded_sessions() -> None:
    event = msgspec.json.decode(sample_line(Sample(HEADER.began_ms + 5, "a:1"), HEADER))
    assert (event["kind"], event["at"]) == ("sample", 5)
    assert "at_ms" not in event
