"""Tables, pages and comparisons as text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_TTL, Reason, Unknown
from rtui.analysis.formats import FORMS, write_text, written
from rtui.analysis.formats.blocks import BlockPage, Facts, GroupedRows
from rtui.analysis.formats.comparison import (
    COMPARISON_FORMAT,
    COMPARISON_SCHEMA,
    both_text,
    comparison_json,
    comparison_page,
    count_text,
    growth_text,
    points_text,
)
from rtui.analysis.formats.csv_and_json import FORMULA, guarded, table_csv, write_csv
from rtui.analysis.formats.text import cells_of, code, escaped, table_markdown
from rtui.analysis.report.comparison import compare
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.analysis.report.readings import FigureChange, Reading, reading, share_reading
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.table import AtLeast, Column, Table, Unit
from rtui.analysis.report.thresholds import judge, parse_fail_on
from rtui.keyspace.text.display import HOSTILE, SafeText, display, unescape
from tests.analysis.formats.made import MADE, reports
from tests.analysis.report.test_comparison import report
from tests.conftest import examples, known
from tests.made_report import denied_report, estimate_report, made_report, node, partial_report

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
    big = replace(exact.summary.big, by_memory=(replace(exact.summary.big.by_memory[0], key=long),))
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
    fence = known(re.match("`+", text))
    assert fence[0] not in re.findall("`+", text[len(fence[0]) : -len(fence[0])])
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


BEFORE = report(node(b"a", (1000, 102_400, 250)), node(b"gone", (1, 60, 0)), node(b"kept", (5, 500, 0)))
AFTER = report(node(b"a", (1200, 204_800, 360)), node(b"new", (3, 90, 0)), node(b"kept", (5, 500, 0)))
THRESHOLDS = ("memory>+20%", "keys>+1000%", "nobody keys>1")


def page(top: int = 20) -> BlockPage:
    diff = compare(BEFORE, AFTER)
    return comparison_page(diff, [judge(parse_fail_on(text), diff) for text in THRESHOLDS], top=top)


def test_text() -> None:
    assert written(page(), "text") == (
        "before  2026-09-21 14:13:20 UTC · 10.0.0.5:6379 · valkey 9.1.2 · db0 · 1,006 keys, exact\n"
        "after   2026-09-21 14:13:20 UTC · 10.0.0.5:6379 · valkey 9.1.2 · db0 · 1,208 keys, exact\n"
        "\n"
        "namespace           keys        change             memory        change     no TTL   change\n"
        "all keys   1,006 → 1,208          +20%  101 KiB → 201 KiB          +99%         0%        =\n"
        "\n"
        "Came (1)\n"
        "new:               0 → 3  from nothing         0 B → 90 B  from nothing     – → 0%        –\n"
        "\n"
        "Went (1)\n"
        "gone:              1 → 0         -100%         60 B → 0 B         -100%     0% → –        –\n"
        "\n"
        "Grew (1)\n"
        "a:         1,000 → 1,200          +20%  100 KiB → 200 KiB         +100%  25% → 30%  +5.0 pt\n"
        "\n"
        "same: 1\n"
        "\n"
        "REACHED  memory>+20%  it is 99.4852%\n"
        "not reached  keys>+1000%  it is 20.0795%\n"
        "NOT CHECKED  nobody keys>1  neither report has a namespace of this name\n"
    )


def test_markdown_holds_the_same_rows() -> None:
    text = written(page(), "md")
    assert "| `a:` | 1,000 → 1,200 | +20% | 100 KiB → 200 KiB | +100% | 25% → 30% | +5.0 pt |" in text
    assert "- REACHED  memory\\>+20%" in text
    assert all(re.fullmatch(r"\|( .+ \|){7}", line) for line in text.splitlines() if line.startswith("|"))


def test_names_stay_names_in_markdown() -> None:
    evil = report(node(b"a|b`c``<script>", (1, 1, 0)), node(b"`", (1, 1, 0), last=True), node(b"\x1b[31m", (1, 1, 0)))
    text = written(comparison_page(compare(report(), evil)), "md")
    assert "```a\\|b`c``<script>:```" in text
    assert "`` ` ``" in text
    assert not HOSTILE.search(text.replace("\n", ""))


def test_the_largest_changes_come_first_and_the_rest_is_counted() -> None:
    grown = [node(b"n%d" % number, (10 + number, 1000 + number, 0)) for number in range(30)]
    small = [node(b"n%d" % number, (10, 1000, 0)) for number in range(1, 30)]
    made = comparison_page(compare(report(*small), report(*grown)), top=5)
    (_, came, grew) = next(block for block in made.blocks if isinstance(block, GroupedRows)).groups
    assert came.rows[0][0] == "n0:"
    assert [row[0] for row in grew.rows] == ["n29:", "n28:", "n27:", "n26:", "n25:"]
    assert grew.left_off == 24
    assert "… and 24 more" in written(made, "text")
    assert "… and 24 more" in written(made, "md")


@pytest.mark.parametrize("other", [made_report(), estimate_report(), partial_report(), denied_report()])
def test_every_kind_of_report_has_its_words(other: object) -> None:
    diff = compare(made_report(), other)  # type: ignore[arg-type]
    text = written(comparison_page(diff), "text")
    for note in diff.notes:
        assert note in text
    assert not HOSTILE.search(text.replace("\n", ""))
    assert json.loads(comparison_json(diff))["notes"] == list(diff.notes)


def test_json_has_every_namespace_and_its_bounds() -> None:
    diff = compare(BEFORE, AFTER)
    document = json.loads(comparison_json(diff, [judge(parse_fail_on("memory>+20%"), diff)]))
    assert (document["format"], document["schema"]) == (COMPARISON_FORMAT, COMPARISON_SCHEMA)
    assert document["total"]["keys"]["after"] == {"value": 1208, "low": 1208, "high": 1208, "is_present": True}
    by_name = {one["namespace"]: one for one in document["namespaces"]}
    assert by_name.keys() == {"a:", "gone:", "kept:", "new:"}
    assert by_name["new:"]["fate"] == "came"
    assert by_name["a:"]["keys"]["difference"] == {"low": 200, "high": 200}
    assert by_name["new:"]["keys"]["growth"] == {"low": None, "high": None}
    assert document["fail_on"] == [{"expression": "memory>+20%", "outcome": "reached", "why": "it is 99.4852%"}]


def test_json_keeps_the_first_and_counts_the_rest() -> None:
    document = json.loads(comparison_json(compare(BEFORE, AFTER), top=1))
    assert len(document["namespaces"]) == 1
    assert document["namespaces_left_off"] == 3


def test_json_is_ascii_and_names_are_exact() -> None:
    evil = report(node(b'\x1b\xff"\\', (1, 1, 0)))
    text = comparison_json(compare(report(), evil))
    assert text.isascii()
    (found,) = json.loads(text)["namespaces"]
    assert unescape(found["namespace_quoted"].encode()) == b'\x1b\xff"\\:'


PRESENT = (ColumnState.COMPLETE, ColumnState.COMPLETE)


@pytest.mark.parametrize(
    ("change", "both", "growth"),
    [
        (FigureChange(reading(5), reading(5)), "5", "="),
        (FigureChange(reading(1000), reading(1001)), "1,000 → 1,001", "+0.1%"),
        (FigureChange(reading(10_000_000), reading(10_000_001)), "10,000,000 → 10,000,001", "+<0.1%"),
        (FigureChange(reading(10_000_001), reading(10_000_000)), "10,000,001 → 10,000,000", "-<0.1%"),
        (FigureChange(reading(5), reading(Estimate(4, 5, 6))), "5 → ≈ 5 (4–6)", "not distinguishable"),
        (FigureChange(reading(100), reading(Estimate(150, 200, 250))), "100 → ≈ 200 (150–250)", "≈ +50 … +150%"),
        (FigureChange(reading(100), reading(110, at_least=True)), "100 → ≥ 110", "≥ +10%"),
        (FigureChange(reading(100), None), "100 → –", "–"),
        (FigureChange(None, None), "–", "–"),
        (FigureChange(Reading(0, 0, 12, is_present=False), reading(30)), "≤ 12 → 30", "≥ +150%"),
        (FigureChange(Reading(0, 0, float("inf"), is_present=False), reading(30)), "? → 30", "not distinguishable"),
    ],
)
def test_the_words_of_a_change(change: FigureChange, both: str, growth: str) -> None:
    assert both_text(change, count_text, PRESENT) == both
    assert growth_text(change) == growth


def test_denied_is_said() -> None:
    assert (
        both_text(FigureChange(reading(1), None), count_text, (ColumnState.COMPLETE, ColumnState.DENIED))
        == "1 → denied"
    )


def test_the_words_of_a_share() -> None:
    seen = share_reading(0.25, of_seen=True)
    assert both_text(
        FigureChange(reading(0.25), seen), lambda value, mark: SafeText(f"{mark}{value:.0%}"), PRESENT
    ) == ("25% → 25% of keys seen")
    assert points_text(FigureChange(reading(0.25), reading(0.30))) == "+5.0 pt"
    assert points_text(FigureChange(reading(0.25), seen)) == "not distinguishable"


def test_a_long_name_is_cut_in_tables() -> None:
    long = report(node(b"x" * 3000, (1, 1, 0)))
    assert max(map(len, written(comparison_page(compare(report(), long)), "text").splitlines())) < 200


def test_the_kind_of_coverage_is_said() -> None:
    made = made_report()
    for kind, said in ((CoverageKind.PARTIAL, "partial"), (CoverageKind.ESTIMATE, "estimate from")):
        head = replace(made.head, coverage=replace(made.head.coverage, kind=kind))
        facts = next(
            one for one in comparison_page(compare(made, replace(made, head=head))).blocks if isinstance(one, Facts)
        )
        assert said in dict(facts.rows)["after"]
