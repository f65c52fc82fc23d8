from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs
from textual.strip import Strip

from rtui.analysis.columns import ALL_COLUMNS
from rtui.analysis.report.document import BigReport, KeyRecord, Report
from rtui.keyspace.text.display import SafeText
from rtui.server.options import BrowseOptions
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.wire.connection import Lost
from rtui.tui.analyse.report_panel import PANELS
from rtui.tui.analyse.screen import AnalyseScreen
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.find import FindScreen
from rtui.tui.kit.choice import SortScreen
from rtui.tui.kit.settings import SettingsFile
from rtui.tui.kit.table import TableBody
from rtui.tui.run import ReportApp
from tests.made_report import denied_report, empty_report, estimate_report, made_report, partial_report
from tests.tui.analyse.analysing import READY, RUNNING, AnalyseUser, FixedAnalysis, analysing
from tests.tui.browsing import until
from tests.tui.visiting import check_text

DONE = replace(RUNNING, progress=replace(RUNNING.progress, state=ScanState.DONE, fraction=1.0, keys=1_000_000))


def done(report: Report | None = None) -> FixedAnalysis:
    return FixedAnalysis(made_report() if report is None else report, DONE)


async def test_nothing_begins_by_itself_and_enter_begins() -> None:
    async with analysing(FixedAnalysis()) as user:
        assert "What does this keyspace hold?" in user.text
        assert "READ-ONLY" in user.text
        assert user.source.asked == []
        await user.press("plus", "enter")
        assert user.source.asked == ["begin"]
        assert user.source.status.pace.value == "normal"
        await user.until_shown("Reading the first keys")


async def test_an_estimate_is_one_key_away_and_what_is_asked_is_chosen_before() -> None:
    async with analysing(FixedAnalysis()) as user:
        await user.press("c", "down", "enter")
        await user.until(lambda: user.source.status.columns == ALL_COLUMNS)
        await user.until(lambda: "idle time and length of every key" in " ".join(user.text.split()))
        await user.press("c", "enter")
        await user.until(lambda: user.source.status.columns is None)
        await user.press("e")
        assert user.source.asked == ["estimate"]


async def test_an_estimate_takes_the_place_of_exact_figures_only_if_the_user_says_so() -> None:
    async with analysing(done()) as user:
        await user.press("e")
        await user.until_shown("The figures of 1,000,000 keys are exact", "Keep exact figures")
        await user.press("enter")
        await user.press("e")
        await user.until_shown("Keep exact figures")
        await user.press("escape")
        assert user.source.asked == []
        await user.press("e")
        await user.until_shown("Keep exact figures")
        await user.press("down", "enter")
        assert user.source.asked == ["estimate"]


@pytest.mark.parametrize("report", [estimate_report(), partial_report()], ids=["estimate", "partial"])
async def test_what_is_not_exact_gives_way_to_an_estimate_at_once(report: Report) -> None:
    async with analysing(done(report)) as user:
        await user.press("e")
        assert user.source.asked == ["estimate"]


async def test_a_pass_can_be_paused_and_stopped() -> None:
    async with analysing(FixedAnalysis(partial_report(), RUNNING)) as user:
        await user.until_shown("43%", "86.0k/s", "7s left", "pace normal", "server 10%")
        await user.press("r", "e")  # what is under way is not begun again by mistake
        assert user.source.asked == []
        await user.press("p")
        await user.until_shown("paused")
        await user.press("p", "x")
        await user.until_shown("stopped")
        assert user.source.asked == ["pause", "resume", "stop"]
        await user.press("p", "r")
        assert user.source.asked[3:] == ["begin"]


async def test_a_lost_connection_is_said() -> None:
    async with analysing(FixedAnalysis(partial_report(), replace(RUNNING, link=Lost(None, 2, 0.0)))) as user:
        await user.until_shown("connection lost", "try 3")


async def test_a_failure_says_why_and_what_to_do() -> None:
    failed = replace(READY, progress=Progress(ScanState.FAILED, reason=SafeText("NOPERM SCAN is not allowed")))
    async with analysing(FixedAnalysis(None, failed)) as user:
        await user.until_shown("The analysis failed", "NOPERM SCAN is not allowed", "Press r to try again")


async def test_an_empty_keyspace_is_said() -> None:
    async with analysing(done(empty_report())) as user:
        await user.until_shown("db0 is empty")
        await user.press("3", "s", "slash", "w", "enter", "tab", "2", "escape")


@pytest.mark.parametrize(
    ("report", "shown"),
    [
        (made_report(), ("exact · 1,000,000 keys", "750,000", "1.28 GiB")),
        (estimate_report(), ("≈ estimate from 20,000 keys", "≈ 750k", "≈ 1.28 GiB")),
        (partial_report(), ("≥ partial 50%", "≥ 750,000", "≥ 1.27 GiB")),
        (denied_report(), ("denied", "widths show keys (memory is not known)", "denied: memory")),
    ],
    ids=["exact", "estimate", "partial", "denied"],
)
async def test_figures_say_how_far_they_can_be_trusted(report: Report, shown: tuple[str, ...]) -> None:
    async with analysing(done(report)) as user:
        await user.until_shown(*shown)


async def test_zooming_in_and_out() -> None:
    async with analysing(done()) as user:
        assert user.rows[0] == "shop:"
        await user.press("enter")
        assert user.rows == ["shop:session:", "shop:user:", "shop:cache:"]
        await user.press("down", "right")
        assert user.rows == ["shop:user:<id>:profile", "shop:user:<id>:orders"]
        await user.press("enter")
        found = user.screen.app.screen
        assert isinstance(found, FindScreen), "there is nothing below but keys"
        assert str(found.search.query) == "pattern:shop:user:<id>:profile"
        await user.press("escape")
        await user.until(lambda: user.screen.app.screen is user.screen)
        await user.press("escape")
        assert user.rows[0] == "shop:session:"
        assert user.screen.view.table.rows.texts(user.screen.view.table.body.cursor_line)[0] == "shop:user:"
        await user.press("left")
        assert user.rows[0] == "shop:"
        await user.press("escape")
        await user.until(lambda: isinstance(user.screen.app.screen, BrowseScreen))


async def test_a_click_on_the_icicle_zooms_and_a_row_is_copied() -> None:
    async with analysing(done()) as user:
        await user.pilot.click("#chart", offset=(4, 4))
        assert user.rows[0] == "shop:session:"
        await user.pilot.click("#chart", offset=(4, 0))
        assert user.rows[0] == "shop:"
        await user.press("y")
        assert user.screen.app.clipboard == "shop:"
        await user.press("3", "down", "down", "down", "y")
        assert user.screen.app.clipboard == '"evil:\\x1b]0;owned\\x07\\xe2\\x80\\xae:\\xff"'
        await user.press("Y")
        await user.until_shown("row, tab-separated")


@pytest.mark.slow
async def test_numbers_and_tab_show_panels() -> None:
    async with analysing(done()) as user:
        for panel in PANELS:
            await user.press(panel.key)
            assert user.screen.view.panel is panel
        await user.press("tab")
        assert user.screen.view.panel is PANELS[0]
        await user.press("shift+tab")
        assert user.screen.view.panel is PANELS[-1]
        await user.pilot.click("#panels", offset=(3, 0))
        assert user.screen.view.panel is PANELS[0]


async def test_big_keys_by_type_by_length_and_by_other_thresholds() -> None:
    async with analysing(done()) as user:
        await user.press("3")
        assert user.rows[0] == "shop:hash:0000"
        await user.until_shown("the largest by memory", "! above thresholds of rtui")
        await user.press("right_square_bracket", "right_square_bracket")
        assert user.rows[0] == "shop:string:0001"
        await user.press("left_square_bracket", "M")
        await user.until_shown("the longest")
        await user.press("T")
        await user.until_shown("above thresholds of alibaba")


@pytest.mark.slow
async def test_a_key_is_gone_to_in_the_tree_and_coming_back_shows_the_panel_again() -> None:
    report = made_report()
    record = KeyRecord(b"shop:user:7:orders", b"set", 4_096, 12)
    big = BigReport(by_memory=(record,), by_type_memory={b"set": (record,)})
    report = structs.replace(report, summary=structs.replace(report.summary, big=big))
    async with analysing(done(report)) as user:
        await user.press("3", "enter")
        app = user.screen.app
        await user.until(lambda: isinstance(app.screen, BrowseScreen))
        browse = app.screen
        assert isinstance(browse, BrowseScreen)
        await user.until(lambda: browse.detail_pane.detail.key == b"shop:user:7:orders")
        await user.press("a")
        await user.until(lambda: isinstance(app.screen, AnalyseScreen))
        assert isinstance(app.screen, AnalyseScreen)
        assert app.screen.view.panel.id == "big"


async def test_sorting_by_any_column_from_the_list_by_key_and_by_mouse() -> None:
    async with analysing(done()) as user:
        await user.press("greater_than_sign")
        assert user.rows == sorted(user.rows, key=str.encode) or "namespace ↑" in user.text
        await user.pilot.press("s")
        await user.until(lambda: isinstance(user.pilot.app.screen, SortScreen))
        await user.pilot.press("down", "enter")
        await user.until_shown("keys ↓")
        assert user.rows[:2] == ["shop:", "rate:"]
        await user.press("S")
        await user.until_shown("keys ↑")
        assert user.rows[-2:] == ["rate:", "shop:"]
        await user.pilot.press("s", "enter")
        await user.until(lambda: user.pilot.app.screen is user.screen)
        assert user.rows[-2:] == ["rate:", "shop:"], "the same again is the same way round"
        header = user.text.splitlines()[user.screen.view.table.region.y]
        await user.pilot.click("#table-header", offset=(header.index("no TTL") + 2, 0))
        await user.until_shown("no TTL ↓")
        await user.pilot.click("#table-header", offset=(header.index("no TTL") + 2, 0))
        await user.until_shown("no TTL ↑")


async def test_the_cursor_stays_on_its_row_when_it_is_sorted() -> None:
    async with analysing(done()) as user:
        await user.press("down", "down")
        subject = user.subject
        await user.press("greater_than_sign", "greater_than_sign", "S")
        assert user.subject == subject


async def test_a_filter_is_live_and_escape_ends_it() -> None:
    async with analysing(done()) as user:
        await user.press("3", "slash", *"evil")
        assert user.rows == ["evil:␛]0;owned␇\\u202e:\\xff"]
        await user.press("enter")
        await user.until_shown("rows with evil")
        await user.press("escape")
        assert len(user.rows) == 100
        await user.press("slash", *"zzz")
        await user.until_shown("No row among the 100 largest has zzz", "Press Escape to show all")


def shrunk(report: Report, order: Callable[[KeyRecord], int]) -> Report:
    """The same report with its big keys in another order."""
    big = report.summary.big
    records = tuple(sorted(big.by_memory, key=order))
    return structs.replace(report, summary=structs.replace(report.summary, big=structs.replace(big, by_memory=records)))


async def test_rows_that_the_user_moved_among_keep_their_places_while_a_pass_runs() -> None:
    report = partial_report()
    async with analysing(FixedAnalysis(report, RUNNING)) as user:
        await user.press("3", "down", "down")
        before, subject, line = user.rows, user.subject, user.screen.view.table.body.cursor_line
        user.source.put(shrunk(report, lambda record: hash(record.key) % 97))
        await user.until(lambda: user.screen._seen == user.source.revision)
        assert (user.rows, user.subject, user.screen.view.table.body.cursor_line) == (before, subject, line)
        await user.press(*["greater_than_sign"] * 3)
        assert user.subject == subject
        assert user.rows == before, "by bytes it is the same order again"


async def test_untouched_rows_are_in_order_while_a_pass_runs() -> None:
    report = partial_report()
    async with analysing(FixedAnalysis(report, RUNNING)) as user:
        await user.press("3")
        user.source.put(shrunk(report, lambda record: record.memory_bytes or 0))
        await user.until(lambda: user.rows[0] == "shop:list:0099" or user.rows[0].endswith("0099"))
        assert user.screen.view.table.body.cursor_line == 0


async def test_the_cursor_stays_with_its_row_at_the_end_of_a_pass() -> None:
    report = partial_report()
    async with analysing(FixedAnalysis(report, RUNNING)) as user:
        await user.press("3", "down", "down")
        subject = user.subject
        user.source.put(shrunk(report, lambda record: record.memory_bytes or 0), ScanState.DONE)
        await user.until(lambda: user.rows[0].endswith("0099"))
        assert user.subject == subject
        assert user.screen.view.table.body.cursor_line == 97


@pytest.mark.parametrize(("panel", "is_kept"), [("1", False), ("2", True), ("3", False), ("4", False), ("7", True)])
async def test_a_ranking_begins_in_its_own_order_in_the_next_session(panel: str, *, is_kept: bool) -> None:
    settings = SettingsFile()
    async with analysing(done(), settings=settings) as user:
        await user.press(panel, "greater_than_sign")
        order = user.screen.view.order
        assert order is not None
        assert user.screen.view.states.orders[user.screen.view.order_name] == order
        assert bool(settings.settings.tables) is is_kept
    settings.choose(f"tables.{user.screen.view.order_name}", order)
    async with analysing(done(), settings=settings) as user:
        await user.press(panel)
        assert user.screen.view.order == (order if is_kept else None)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def write(user: AnalyseUser, path: Path) -> None:
    await user.press("w")
    user.screen.file_input.value = str(path)
    await user.press("enter")


@pytest.mark.slow
async def test_a_table_is_written_as_it_is_shown(tmp_path: Path) -> None:
    async with analysing(done()) as user:
        await user.press("3", "slash", *"hash:", "enter")
        for name in ("big.csv", "big.json", "big.md"):
            await write(user, tmp_path / name)
        await user.until_shown("Written")
    rows = list(csv.DictReader((tmp_path / "big.csv").open(encoding="utf-8")))
    assert (rows[0]["key"], rows[0]["type"], rows[0]["memory_bytes"]) == ("shop:hash:0000", "hash", "50000000")
    assert rows == [row for row in rows if "hash" in row["key"]]
    records = json.loads((tmp_path / "big.json").read_text())
    assert records[0]["key"] == "shop:hash:0000"
    assert records[0]["memory_bytes"] == 50_000_000
    assert (tmp_path / "big.md").read_text().startswith("| key | type |")


async def test_what_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "folder.csv" / "full").touch()
    async with analysing(done()) as user:
        for name in ("nowhere/big.csv", "big.exe", "folder.csv"):
            user.screen.app.clear_notifications()
            await user.until(lambda: "Not written" not in user.text)
            await write(user, tmp_path / name)
            await user.until_shown("Not written")
    assert names_in(tmp_path) == ["folder.csv"]


async def test_a_full_disk_leaves_the_old_file_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "old.csv").write_text("old")
    async with analysing(done()) as user:
        monkeypatch.setattr(os, "fsync", full)
        await write(user, tmp_path / "old.csv")
        await user.until_shown("Not written", "No space left on device")
    assert names_in(tmp_path) == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "old"


@pytest.mark.slow
@pytest.mark.parametrize("ascii_only", [False, True], ids=["unicode", "ascii"])
async def test_hostile_names_stay_text_at_every_size(ascii_only: bool) -> None:
    async with analysing(done(), ascii_only=ascii_only) as user:
        for size in ((80, 24), (120, 36), (200, 50), (40, 12)):
            await user.pilot.resize_terminal(*size)
            await user.until(lambda size=size: user.screen.size == size)  # type: ignore[misc]
            for keys in (("2",), ("enter",), ("3", "home"), ("down", "down", "down")):
                await user.press(*keys)
                text = user.text
                check_text(text.replace("\n", ""))
                assert not ascii_only or text.isascii()


async def test_a_report_from_a_file_offers_nothing_that_needs_a_server() -> None:
    app = ReportApp(made_report(), BrowseOptions())
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, AnalyseScreen))
        screen = app.screen
        assert isinstance(screen, AnalyseScreen)
        await until(pilot, lambda: len(screen.view.table.rows) > 0)
        offered = {command.id for command in screen.offered()}
        assert not offered & {"begin", "estimate", "pause", "faster", "slower", "stop", "leave"}
        assert {"open", "sort", "filter", "export", "memory", "big"} <= offered
        await pilot.press("3", "enter", "escape", "escape", "a", "r", "e", "p", "x", "plus")
        assert app.screen is screen


async def test_tables_are_made_once_for_a_report() -> None:
    async with analysing(done()) as user:
        await user.press("3", "2")
        tables = dict(user.screen.view.states.tables)
        await user.press("3", "2", "down", "greater_than_sign", "S")
        assert {name: id(table) for name, table in user.screen.view.states.tables.items()} == {
            name: id(table) for name, table in tables.items()
        }


async def test_a_move_paints_the_row_that_is_left_and_the_row_that_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    async with analysing(done()) as user:
        await user.press("3")
        body, painted = user.screen.view.table.body, list[int]()
        await until(user.pilot, lambda: body.cursor_line == 0)
        render_line = type(body).render_line

        def rendered(view: TableBody, y: int) -> Strip:
            painted.append(y)
            return render_line(view, y)

        monkeypatch.setattr(type(body), "render_line", rendered)
        body.action_cursor_down()
        await until(user.pilot, lambda: body.cursor_line == 1)
        assert sorted(painted) == [0, 1]
