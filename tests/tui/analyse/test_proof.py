"""A whole session of the analysis on every server version: what it asked, what it needed, what it left behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Final

import pytest

from rtui.analysis.report.document import CoverageKind
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import Secret
from rtui.server.guard.evidence import PROBE_KEY
from rtui.tui.analyse.memory_panel import Colouring
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.kit.settings import SettingsFile
from tests.made_report import made_report
from tests.server import every_type
from tests.servers import Server
from tests.tui.analyse.analysing import FixedAnalysis, analysing
from tests.tui.analyse.analysis_tour import AnalysisTour, analysis_tour
from tests.tui.tour import NOT_MONITORED, PLANTED_IDLE_S, minimal_user, plant, plant_idle
from tests.tui.visiting import check_text

TOP: Final = 100
"""Keys whose length is asked where that counts as an access."""

ALWAYS_ASKED = frozenset(
    b"CLIENT PING INFO DBSIZE SCAN TYPE PTTL MEMORY OBJECT STRLEN HLEN LLEN SCARD ZCARD XLEN".split()
)
"""What such a session has to ask on every version, or it was none."""

RECENCY = frozenset({b"IDLETIME", b"FREQ"})


def toured(
    server: Server, folder: Path, what: str, user: tuple[str, Secret] | None = None, *, consents: bool = False
) -> AnalysisTour:
    """Take a tour in which the keyspace is large enough for a sample."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rtui.server.analysis.session.ESTIMATE_KEYS", 60)
        return asyncio.run(analysis_tour(server, folder, what=what, user=user, consents=consents))


def dumps(server: Server) -> dict[bytes, object]:
    """Every key as it would be moved to another server."""
    admin = server.admin
    keys = sorted(admin.scan_iter(count=1000))
    pipeline = admin.pipeline(transaction=False)
    for key in keys:
        pipeline.execute_command("DUMP", key)
        pipeline.execute_command("PEXPIRETIME" if server.version >= (7, 0) else "EXISTS", key)
    replies = pipeline.execute()
    return dict(zip(keys, zip(replies[::2], replies[1::2], strict=True), strict=True))


@pytest.mark.slow
def test_an_analysis_of_anybody(server: Server, tmp_path: Path) -> None:
    """On a server that counts each access of a key, and by a user without limits, who agrees to a hot-key session."""
    server.admin.config_set("maxmemory-policy", "allkeys-lfu")
    server.admin.config_set("lfu-log-factor", 0)
    server.admin.config_set("lfu-decay-time", 0)
    plant(server)
    server.admin.delete("awkward:values:soon-gone")
    stored = dumps(server)
    done = toured(server, tmp_path, "FREQ", consents=True)
    assert dumps(server) == stored
    done.check_what_was_sent(NOT_MONITORED | {b"HOTKEYS"})
    _check_sessions(done, consented=True)
    _check_what_was_seen(done)
    _check_what_was_touched(done, {key for key, counter in done.after.items() if counter != done.before[key]})


@pytest.mark.slow
def test_an_analysis_of_the_minimal_user(server: Server, tmp_path: Path) -> None:
    """By the user that `rtui acl` prints, on a server whose keys nobody has used for long."""
    plant(server)
    plant_idle(server)
    user = minimal_user(server)
    server.admin.execute_command("ACL", "LOG", "RESET")
    done = toured(server, tmp_path, "IDLETIME", user)
    assert done.refused == []
    done.check_what_was_sent(NOT_MONITORED | {b"HOTKEYS"})
    _check_sessions(done, consented=False)
    _check_what_was_seen(done)
    assert min(done.before.values()) >= PLANTED_IDLE_S
    _check_what_was_touched(done, {key for key, idle_s in done.after.items() if idle_s < PLANTED_IDLE_S})


def _check_sessions(done: AnalysisTour, *, consented: bool) -> None:
    """The server was made to do something exactly once where the user has agreed, else never."""
    started = [argv for argv in done.wire if argv[:1] == [b"HOTKEYS"] and argv[1] != b"GET"]
    has_sessions = done.server.product == "redis" and done.server.version >= (8, 6)
    assert len(started) == (1 if consented and has_sessions else 0), started
    for argv in started:
        assert argv[1] == b"START"
        assert int(argv[argv.index(b"DURATION") + 1]) > 0
        assert int(argv[argv.index(b"SAMPLE") + 1]) >= 10


def _check_what_was_seen(done: AnalysisTour) -> None:
    """The session was none of a few commands and figures that would prove little."""
    assert {argv[0] for argv in done.wire[done.before_analysis :]} >= ALWAYS_ASKED - {b"CLIENT"}
    assert done.estimate is not None
    assert done.report is not None
    assert done.estimate.head.coverage.kind is CoverageKind.ESTIMATE
    coverage = done.report.head.coverage
    assert coverage.unread == 1, "a name that is too long"
    assert coverage.total_keys == coverage.keys + coverage.unread == done.report.summary.root.stats.keys
    assert coverage.total_keys >= len(done.after)
    assert set(done.texts) == {panel.id for panel in PANELS}
    assert all(
        record.length is not None or record.key_type == b"vectorset"
        for record in done.report.summary.big.by_memory[:TOP]
    )
    assert len(done.copied) == 4
    for text in done.copied:
        check_text(text.replace("\t", " "))
    assert {record["type"] for record in json.loads(done.written)} >= {"list"}


def _check_what_was_touched(done: AnalysisTour, touched: set[bytes]) -> None:
    """Where looking leaves no trace nothing was touched; elsewhere the largest alone, when their use was known."""
    assert done.before.keys() - done.after.keys() <= {b"awkward:values:soon-gone"}
    assert done.report is not None
    assert done.estimate is not None
    if every_type.has_no_touch(done.server):
        assert touched == set()
        return
    tops = (done.report.summary.big.by_memory, done.estimate.summary.big.by_memory)
    largest = {record.key for top in tops for record in top[:TOP]}
    assert touched <= largest | {done.gone_to}
    assert touched, "asking for a length counts here"
    names = {spec.words[0] for spec in TABLE if spec.touches}
    asked: set[bytes] = set()
    for argv in done.wire[done.before_analysis :]:
        if argv[0] == b"OBJECT" and argv[1] in RECENCY:
            asked.add(argv[2])
        elif argv[0] in names:
            assert argv[1] in asked | {done.gone_to, PROBE_KEY}, argv


def at_memory(path: Path | None = None) -> SettingsFile:
    """Settings of a user who has left the analysis at the Memory panel."""
    settings = SettingsFile(path)
    settings.choose("panel", "memory")
    return settings


async def test_the_order_of_a_table_is_remembered_by_panel_and_kind_of_table(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    settings = at_memory(path)
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        made = user.rows
        await user.press("greater_than_sign", "S")
        await user.until(lambda: settings.settings.tables == {"memory.namespaces": "-namespace"})
        chosen = user.rows
        assert chosen != made
        await user.press("enter")
        await user.until(lambda: user.screen.view.order == "-namespace")
    await settings.close()
    again = SettingsFile(path)
    async with analysing(FixedAnalysis(made_report()), settings=again) as user:
        assert user.rows == chosen
        for _ in range(len(user.screen.view.table.rows.table.columns)):
            await user.press("greater_than_sign")
        await user.until(lambda: again.settings.tables == {})
        assert user.rows == made


async def test_an_order_by_a_column_that_is_not_there_leaves_the_rows_as_they_come() -> None:
    settings = at_memory()
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        made = user.rows
    settings.choose("tables.memory.namespaces", "nothing")
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        assert user.rows == made


async def test_what_the_colours_stand_for_is_remembered() -> None:
    settings = at_memory()
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        await user.press("v")
        await user.until(lambda: settings.settings.colouring == "idle")
    async with analysing(FixedAnalysis(made_report()), settings=settings) as user:
        assert user.screen.view.state.colouring is Colouring.IDLE
