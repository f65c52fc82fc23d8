"""How many keys there are: once a scan is complete its count stands everywhere, whatever a user may ask."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rtui.analysis.estimates import Estimate
from rtui.analysis.formats import FORMS, write_text
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.wire.identity import Outdated, parse_identity
from rtui.tui.analyse import screen_lines
from rtui.tui.kit.status_lines import status_line, title_line
from rtui.tui.kit.styled_text import Line
from tests.server.browsing.test_session import browsing, whole
from tests.server.targets import connected, numbered, plant, target_of
from tests.servers import Server
from tests.tui.analyse.analysing import RUNNING as ANALYSED
from tests.tui.fixed_session import COMPLETE


def shown(status: BrowsingStatus) -> tuple[str, str]:
    """The title and the status as they are read."""
    return text_of(title_line(status, 200)), text_of(status_line(status, 0.0, 200))


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def counts(text: str) -> list[str]:
    """The numbers of keys in a line, with their marks."""
    return re.findall(r"((?:≈ |≥ )?[0-9][0-9,.kM]*(?: \([^)]*\))?) keys?\b", text)


@pytest.mark.parametrize("denied", [(), ("-dbsize",), ("-info",), ("-dbsize", "-info")], ids=" ".join)
@pytest.mark.parametrize("count", [1, 300, 2_000])
async def test_title_and_status_have_the_count_of_the_scan(
    valkey: Server, tmp_path: Path, count: int, denied: tuple[str, ...]
) -> None:
    plant(valkey, numbered(count))
    if denied:
        valkey.admin.execute_command("ACL", "SETUSER", "default", *denied)
    async with browsing(target_of(valkey), tmp_path) as session:
        await whole(session)
        title, status = shown(session.status)
    assert counts(title) == counts(status) == [f"{count:,}"]
    assert ("1 key " in f"{title} ") == (count == 1)


async def test_a_filter_leaves_the_count_of_all_in_the_title(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [*numbered(300, b"a:"), *numbered(40, b"b:")])
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-dbsize", "-info")
    async with browsing(target_of(valkey), tmp_path, match=b"b:*") as session:
        await whole(session)
        title, status = shown(session.status)
    assert counts(title) == []
    assert counts(status) == ["40"]
    assert "matching b:*" in status


SOME = replace(COMPLETE, progress=Progress(ScanState.DONE, 1.0, 300), seen_age_s=20.0)


@pytest.mark.parametrize("total", [None, 300, 305, Estimate(301.0, 305.0, 310.0)])
def test_what_came_since_stands_beside_it(total: int | Estimate | None) -> None:
    title, status = shown(replace(SOME, total=total))
    assert counts(title) == counts(status) == ["300"]
    assert ("305 now by DBSIZE" in status) == (total == 305)


def test_while_it_is_scanned_and_when_it_no_longer_holds_the_server_is_believed() -> None:
    running = replace(SOME, progress=Progress(ScanState.RUNNING, 0.5, 150), complete=False, total=305)
    assert counts(shown(running)[0]) == ["305"]
    assert counts(shown(replace(SOME, total=4, outdated=Outdated.SHRANK))[0]) == ["4"]
    assert counts(shown(replace(SOME, total=305, match=b"a*"))[0]) == ["305"]


async def test_keys_whose_names_are_too_long_to_be_asked_count_everywhere(valkey: Server) -> None:
    plant(valkey, [*numbered(30), b"a:" + b"x" * 70_000, b"b:" + b"x" * 80_000])
    async with connected(target_of(valkey)) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        await run.run()
        report, progress = run.report, run.progress
    assert report is not None
    assert report.head.coverage.unread == 2
    status = replace(ANALYSED, progress=progress)
    title = text_of(screen_lines.title_line(status, report, 200))
    assert counts(title) == counts(text_of(screen_lines.status_line(status, report, 0.0, 200))) == ["32"]
    assert {counts(write(report))[0] for write in (write_text, FORMS["md"])} == {"32"}


@pytest.mark.parametrize("said", ["-5", "18446744073709551615", "nan", "abc"])
def test_the_title_shows_no_memory_that_can_not_be(said: str) -> None:
    server = parse_identity([f"redis_version:7.0.0\r\nused_memory:{said}\r\ninstantaneous_ops_per_sec:{said}".encode()])
    title, _ = shown(replace(SOME, server=server))
    assert f"mem unknown (the server says {said})" in title
    assert "ops/s" not in title
