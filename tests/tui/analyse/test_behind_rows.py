"""Every row of every panel leads somewhere: to a key, or to the keys behind it."""

from __future__ import annotations

from typing import Any

import pytest

from rtui.analysis.query.parsing import parse
from rtui.analysis.query.rows_behind import behind_key, behind_row
from rtui.tui.analyse.commands import PANELS
from rtui.tui.analyse.panel import Panel
from rtui.tui.analyse.screen_lines import key_of
from tests.made_report import made_report


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.id)
def test_every_row_leads_to_keys(panel: Panel[Any]) -> None:
    report = made_report()
    rows = 0
    for listed in panel.tables(report, panel.initial):
        table = listed.make()
        for row in range(len(table.rows)):
            if key_of(table.subject(row)) is None:
                found = behind_row(report, table, row)
                assert found is not None, (table.id, table.rows[row])
                assert parse(str(found.query)) == found.query
            rows += 1
    assert rows


@pytest.mark.parametrize("key", [b"a", b"user:*:[x]", b"\x1b[31m \"'", b"ttl:none", b"\xff\\"])
def test_the_query_of_one_key_reads_back(key: bytes) -> None:
    query = behind_key(key).query
    assert parse(str(query)) == query
