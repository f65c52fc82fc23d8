from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.formats import FORMS
from rtui.analysis.formats.markdown import code, escaped, table_markdown
from rtui.analysis.report.tables.table import Column, Table, Unit
from rtui.keyspace.text.display import display
from tests.analysis.formats.made import MADE

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
