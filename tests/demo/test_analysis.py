"""The demo has something to show in every panel of the analysis."""

from __future__ import annotations

import pytest

from rtui.analysis.report.document import HotSource, Report
from rtui.demo.load import demo_server
from rtui.server.analysis.run import AnalysisRun
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from tests.conftest import require
from tests.server.targets import connected

KEYS = 12_000


async def analysed() -> Report:
    with demo_server(KEYS) as demo:
        assert demo.wait_loaded()
        async with connected(demo.target) as connection:
            analysing = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
            await analysing.run()
    assert analysing.report is not None
    return analysing.report


@pytest.mark.slow
async def test_every_panel_has_something_to_show() -> None:
    require("valkey-9.1")
    report = await analysed()
    summary, hot = report.summary, report.hot
    assert {cliff.label for cliff in summary.expiry.cliffs} >= {"app:session:", "PRO:LOGIN:"}
    assert summary.slots.tags[0].tag == b"campaign42"
    assert summary.big.over[b"string"] == 2
    assert [record.key_type for record in summary.big.by_memory[:2]] == [b"string", b"string"]
    assert hot.source is HotSource.FREQUENCY
    assert hot.lists[0].keys[0].record.key == b"hot:config"
    assert len({key.value for key in hot.lists[0].keys[:20]}) > 10
    frequency = summary.root.stats.frequency
    assert frequency is not None
    assert frequency[0] != 0, "some that nobody uses"
    assert frequency[-2] != 0, "some that everybody does"
    lasting = {child.name for child in summary.root.children if child.stats.no_ttl_share == 1.0}
    assert lasting >= {b"order", b"user", b"social"}
    assert {(one.key_type, one.encoding) for one in summary.encodings} >= {(b"set", b"intset"), (b"string", b"int")}
    assert len(summary.types) == 6
