"""What a report says of the keys that rtui itself has read, on servers where reading counts as a use."""

from __future__ import annotations

import pytest

from rtui.analysis.report.document import HotSource, Report
from rtui.server.analysis.run import AnalysisRun
from rtui.server.facts.key_facts import key_facts
from rtui.server.hot.report import READS_COUNT
from rtui.server.inspection.largest import READ_BY_RTUI, READ_BY_RTUI_NOTE
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.connection import Connection
from tests.conftest import Pool
from tests.server.targets import connected, target_of
from tests.servers import Server

LARGEST = [b"large:%d" % number for number in range(3)]
OTHERS = [b"small:%d" % number for number in range(20)]


@pytest.fixture(params=["redis-6.2", "redis-7.0"])
def touching(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """Servers on which reading a key counts as a use, with keys that nobody has used for different times."""
    name: str = request.param
    server = pool.take(name, name)
    client = server.client()
    for number, key in enumerate((*OTHERS, *LARGEST)):
        client.set(key, "x" * (50_000 if key in LARGEST else 10))
        client.execute_command("RESTORE", key, 0, client.dump(key), "REPLACE", "IDLETIME", 1_000 + 100 * number)
    return server


async def analysed(connection: Connection) -> Report:
    """The report of one pass that lists 3 keys."""
    analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, top=3))
    await analysis.run()
    assert analysis.report is not None
    return analysis.report


async def test_the_largest_keys_are_marked_and_do_not_lead_the_next_run(touching: Server) -> None:
    async with connected(target_of(touching)) as connection:
        first = await analysed(connection)
        second = await analysed(connection)
    assert {record.key: record.note for record in first.summary.big.by_memory} == dict.fromkeys(LARGEST, READ_BY_RTUI)
    assert READ_BY_RTUI_NOTE in first.head.notes
    assert all(int(touching.client().object("idletime", key)) < 1_000 for key in LARGEST)
    for report in (first, second):
        assert report.hot.source is HotSource.IDLE
        assert READS_COUNT in report.hot.better
    assert [one.record.key for one in first.hot.lists[0].keys] == OTHERS[:3]
    assert [one.record.key for one in second.hot.lists[0].keys] == OTHERS[:3]
    assert second.summary.root.stats.idle == first.summary.root.stats.idle
    assert "The idle times of 3 keys are those before rtui itself read them." in second.head.notes


async def test_keys_that_were_shown_in_this_session_do_not_lead_the_list(touching: Server) -> None:
    async with connected(target_of(touching)) as connection:
        await key_facts(connection, OTHERS[-1])
        report = await analysed(connection)
    assert [one.record.key for one in report.hot.lists[0].keys] == OTHERS[:3]
    assert "The idle time of 1 key is that before rtui itself read it." in report.head.notes


async def test_where_reading_is_no_use_nothing_is_marked(valkey: Server) -> None:
    valkey.client().set("large", "x" * 50_000)
    async with connected(target_of(valkey)) as connection:
        await key_facts(connection, b"large")
        report = await analysed(connection)
    assert [record.note for record in report.summary.big.by_memory] == [""]
    assert READ_BY_RTUI_NOTE not in report.head.notes
    assert READS_COUNT not in report.hot.better
    assert len(connection.own_reads) == 0
