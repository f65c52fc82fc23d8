"""Tables and pages as text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_TTL, Reason, Unknown
from rtui.analysis.formats import FORMS, write_text
from rtui.analysis.formats.csv_and_json import FORMULA, guarded, table_csv, write_csv
from rtui.analysis.formats.text import cells_of, code, escaped, table_markdown
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.table import AtLeast, Column, Table, Unit
from rtui.keyspace.text.display import HOSTILE, display, unescape
from tests.analysis.formats.generated import reports
from tests.analysis.formats.made import MADE
from tests.examples import examples

GOLDEN = Path(__file__).parent / "golden"
"""What people read, as it was when somebody last looked at it: `write_text` of the made reports, 100 wide."""


@pytest.mark.parametrize("name", MADE)
def test_people_read_what_was_agreed(name: str) -> None:
    assert write_text(MADE[name], width=100) == (GOLDEN / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_it_may_be(name: str, width: int) -> None:
    assert max(map(cells_of, write_text(MADE[name], width=width).splitlines())) <= width


def test_without_a_width_nothing_is_cut() -> None:
    long = b"a:" * 100 + b"z"
    exact = MADE["exact"]
    record = replace(exact.summary.big.by_memory[0], key=long)
    big = replace(exact.summary.big, by_memory=(record,))
    report = replace(exact, summary=replace(exact.summary, big=big))
    assert long.decode() in write_text(report, width=None)
    assert long.decode() not in write_text(report, width=100)


@pytest.mark.parametrize("name", MADE)
def test_the_ascii_form_is_ascii(name: str) -> None:
    assert write_text(MADE[name], ascii_only=True).isascii()


def test_wide_names_keep_the_columns_in_line() -> None:
    exact = MADE["exact"]
    wide = tuple(replace(one, key=("鍵" * 5).encode()) for one in exact.summary.big.by_memory[:2])
    big = replace(exact.summary.big, by_memory=(*wide, exact.summary.big.by_memory[4]))
    lines = write_text(replace(exact, summary=replace(exact.summary, big=big))).splitlines()
    start = lines.index("Biggest keys by memory")
    ends = {cells_of(line[: line.index("hashtable")]) for line in lines[start + 2 : start + 5] if "hashtable" in line}
    assert len(ends) == 1


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(reports, st.sampled_from((None, 20, 100)), st.booleans())
def test_every_line_of_any_report_is_safe(report: Report, width: int | None, ascii_only: bool) -> None:
    text = write_text(report, width=width, ascii_only=ascii_only)
    assert text.isascii() or not ascii_only
    assert not any(HOSTILE.search(line) for line in text.split("\n"))


_BARS = re.compile(r"(?<!\\)\|")


@pytest.mark.parametrize("name", MADE)
def test_every_row_of_every_table_has_all_cells(name: str) -> None:
    widths: set[int] = set()
    for line in FORMS["md"](MADE[name]).splitlines():
        if line.startswith("|"):
            widths.add(len(_BARS.findall(line)))
        else:
            assert len(widths) <= 1, line
            widths.clear()


def test_a_table_reads_as_markdown() -> None:
    columns = (Column("key", "key", Unit.NAME), Column("n", "keys", Unit.KEYS), Column("t", "note", Unit.TEXT))
    rows = ((b"a|b`c", 1_204, "<b>&[x](data:1)"), (b"", None, "*see* https://x.y www.x :tada:"))
    table = Table("t", "t", columns, rows)
    assert table_markdown(table) == (
        "| key | keys | note |\n"
        "| :-- | --: | :-- |\n"
        "| ``a\\|b`c`` | 1,204 | \\<b\\>\\&\\[x\\](data:1) |\n"
        "| (empty) | – | \\*see\\* https\\://x.y www\\.x \\:tada: |\n"
    )


@given(st.binary(max_size=40))
def test_a_name_stays_within_its_code(name: bytes) -> None:
    text = code(display(name))
    fence = re.match("`+", text)
    assert fence is not None
    inner = text[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inner)
    assert not _BARS.search(text)


@given(st.text(max_size=40))
def test_a_text_becomes_nothing_else(text: str) -> None:
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>|@#&$~]", escaped(text))


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("name", MADE)
def test_there_is_a_row_for_every_namespace(name: str) -> None:
    rows = read(write_csv(MADE[name]))
    assert len(rows) == sum(1 for _ in MADE[name].summary.root.walk())
    assert rows[0]["depth"] == "0"


def test_numbers_are_raw_with_units_in_the_header() -> None:
    shop = read(write_csv(MADE["exact"]))[1]
    assert shop["namespace"] == "shop:"
    assert shop["namespace_quoted"] == '"shop:"'
    assert shop["keys"] == "750000"
    assert shop["memory_bytes"] == "1374000000"
    assert shop["soonest_expiry_epoch_s"] == "1790000012.0"
    assert shop["types"] == "string 500000; hash 150000; set 100000"


def test_estimates_have_their_bounds_beside_them() -> None:
    shop = read(write_csv(MADE["estimate"]))[1]
    assert (shop["keys"], shop["keys_low"], shop["keys_high"]) == ("750000.0", "712500.0", "787500.0")


def test_lower_bounds_say_so() -> None:
    shop = read(write_csv(MADE["partial"]))[1]
    assert (shop["keys"], shop["keys_at_least"]) == ("750000", "1")


def test_fields_are_the_same_for_every_report() -> None:
    heads = {write_csv(report).partition("\r\n")[0] for report in MADE.values()}
    assert len(heads) == 1
    assert heads.pop().startswith("depth,namespace,namespace_quoted,kind,keys,share_of_keys,memory_bytes,")
    kinds = {name: {row["coverage"] for row in read(write_csv(report))} for name, report in MADE.items()}
    assert (kinds["exact"], kinds["partial"], kinds["estimate"]) == ({"exact"}, {"partial"}, {"estimate"})


def test_what_is_not_known_is_empty() -> None:
    assert read(write_csv(MADE["denied"]))[1]["memory_bytes"] == ""


@pytest.mark.parametrize("name", MADE)
def test_every_table_has_a_csv(name: str) -> None:
    for table in tables(MADE[name]):
        assert len(read(table_csv(table))) == len(table.rows)


def test_every_kind_of_cell_has_its_field() -> None:
    columns = (Column("key", "key", Unit.NAME), Column("ttl", "TTL", Unit.DURATION), Column("n", "n", Unit.KEYS))
    rows = ((b"=cmd()", NO_TTL, Estimate(1, 2, float("inf"))), (b"\xff", Unknown(Reason.DENIED), AtLeast(3)))
    assert table_csv(Table("t", "t", columns, rows)) == (
        "key,key_quoted,ttl_ms,n,n_low,n_high,n_at_least\r\n"
        '\'=cmd(),"""=cmd()""",-1,2,1,,\r\n'
        '\\xff,"""\\xff""",,3,,,1\r\n'
    )


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=5))
def test_names_come_back_and_none_is_a_formula(names: list[bytes]) -> None:
    table = Table("t", "t", (Column("key", "key", Unit.NAME),), tuple((name,) for name in names))
    rows = read(table_csv(table))
    assert [unescape(row["key_quoted"].encode()) for row in rows] == names
    assert not any(row["key"].startswith(FORMULA) for row in rows)


@given(st.text(max_size=5))
def test_a_guarded_text_is_no_formula(text: str) -> None:
    assert not guarded(text).startswith(FORMULA)
