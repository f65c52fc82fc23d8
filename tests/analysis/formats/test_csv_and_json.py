from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NO_TTL, Reason, Unknown
from rtui.analysis.formats.csv_and_json import FORMULA, guarded, table_csv, write_csv
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.table import AtLeast, Column, Table, Unit
from rtui.keyspace.text.display import unescape
from tests.analysis.formats.made import MADE


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
        "key,key_quoted,ttl_s,n,n_low,n_high,n_at_least\r\n"
        '\'=cmd(),"""=cmd()""",no TTL,2,1,,\r\n'
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
