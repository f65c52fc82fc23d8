"""The list of found keys on fixed values: opening, sorting, going to a key and back, writing, what is said when."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.screen import Screen

from rtui.analysis.humanize import Mark, moment
from rtui.analysis.query.hints import complete
from rtui.analysis.query.parsing import parse, read
from rtui.analysis.query.query import Query, Term
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.matching import natural
from rtui.server.scan.progress import Progress, ScanState
from rtui.server.search.search import Stage
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.target import Target
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.find import FindScreen
from rtui.tui.found_rows import as_of
from rtui.tui.found_view import Marker, marked_spans, whole_name
from rtui.tui.kit.choice import SwitchScreen
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.query_hints import hint_lines, is_query, styled_parts
from rtui.tui.kit.query_line import NameScreen, QueryLine
from rtui.tui.kit.settings import SettingsError, SettingsFile, expanded, save_query, unknown_names
from rtui.tui.kit.styled_text import Role, cut_middle, line_width
from tests.conftest import known
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_search import FixedSearch
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import check_text

BLANK = "space"


def keys_for(text: str) -> list[str]:
    return [BLANK if character == " " else character for character in text]


def lines(screen: FindScreen) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in screen.view.body.lines_in_view]


def names(screen: FindScreen) -> list[str]:
    return [line.split()[0] for line in lines(screen)]


def said(screen: FindScreen) -> str:
    """What stands around the rows, or in place of them."""
    panels = (screen.query_bar, screen.nothing, screen.notes, screen.status_bar, screen.footer_bar)
    return "\n".join("".join(span.text for span in line) for panel in panels for line in panel.lines)


@asynccontextmanager
async def finding(
    query: str, session: FixedSession | None = None, size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[BrowseUser, FindScreen]]:
    """Type a query in the tree and wait for the list."""
    async with browsing(session, size, notifications=True) as user:
        await user.pilot.press("slash", *keys_for(query), "enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))
        screen = user.pilot.app.screen
        assert isinstance(screen, FindScreen)
        await until(user.pilot, lambda: bool(screen.query_bar.lines))
        yield user, screen


async def ask(user: BrowseUser, screen: FindScreen, query: str) -> None:
    await user.pilot.press("slash")
    screen.query_input.value = query
    await user.pilot.press("enter")
    await until(user.pilot, lambda: f" {query}  " in f" {said(screen)}  " and bool(screen.query_bar.lines))


async def test_a_query_lists_keys_without_styling_all_widgets_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    styled: list[str] = []

    def style(screen: FindScreen, *, animate: bool = True) -> None:
        styled.append(type(screen).__name__)
        Screen.update_node_styles(screen, animate=animate)

    monkeypatch.setattr(FindScreen, "update_node_styles", style, raising=False)
    async with finding("in:lock") as (user, screen):
        await until(user.pilot, lambda: bool(lines(screen)))
        assert not styled
        assert screen.view.size.height > 1
        assert not screen.nothing.size.height
        assert names(screen)[0] == "lock:order:0"
        assert screen.view.body.cursor_line == 0
        assert screen.focused is screen.view.body
        assert "in:lock  300 keys" in said(screen)


async def test_sorting_keeps_the_cursor_and_escape_comes_back_from_a_key_to_the_list_as_it_was() -> None:
    async with finding("in:lock") as (user, screen):
        await user.pilot.press("down", "down")
        record = screen.view.body.record
        await user.pilot.press(*["greater_than_sign"] * 4)
        await until(user.pilot, lambda: screen.rows.sort == "size" and bool(screen.rows._lines))
        sizes = [one.memory_bytes or 0 for one in screen.rows.shown()]
        assert sizes == sorted(sizes, reverse=True)
        await until(user.pilot, lambda: screen.view.body.record == record)
        await user.pilot.press("S")
        await until(user.pilot, lambda: screen.rows.shown()[0].memory_bytes == min(sizes))
        await user.pilot.press("home", "pagedown", "down")
        key = screen.view.body.record
        before, top = lines(screen), screen.view.body.scroll_offset.y
        assert key is not None
        assert top > 0
        await user.pilot.press("enter")
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        await until(user.pilot, lambda: user.screen.detail_pane.detail.key == key.key)
        await user.settled()
        assert user.name == key.key
        assert "esc Back" in user.footer
        await user.pilot.press("escape")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))
        back = user.pilot.app.screen
        assert isinstance(back, FindScreen)
        await until(user.pilot, lambda: lines(back) == before)
        assert back.view.body.record == key
        assert back.view.body.scroll_offset.y == top
        assert len(user.session.searches) == 1
        await user.pilot.press("escape")
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        assert user.session.searches[0].closed


async def test_names_are_sorted_with_their_numbers_or_by_their_bytes() -> None:
    async with finding("in:shop") as (user, screen):

        def listed() -> list[bytes]:
            return [record.key for record in screen.rows.shown()]

        natural_order, byte_order = sorted(listed(), key=natural), sorted(listed())
        assert natural_order != byte_order
        await user.pilot.press("s", "home", "down", "enter")
        await until(user.pilot, lambda: listed() == natural_order)
        await user.pilot.press("s", "end", "enter")
        await until(user.pilot, lambda: listed() == byte_order)
        await user.pilot.press("S")
        await until(user.pilot, lambda: listed() == byte_order[::-1])
        await until(user.pilot, lambda: screen.rows.record(0).key == byte_order[-1])


async def test_a_near_miss_is_said_beside_what_was_found_and_in_its_place() -> None:
    async with finding("type:string AND ttl:none") as (user, screen):
        await until(user.pilot, lambda: "No keys match" in said(screen))
        assert "did you mean type:string ttl:none?" in said(screen)
        await ask(user, screen, "!tyep:hash len>0")
        await until(user.pilot, lambda: bool(lines(screen)) and "did you mean !type:hash?" in said(screen))
        await ask(user, screen, "tags:x ttl:none")
        await until(user.pilot, lambda: "did you mean tag:x?" in said(screen))


async def test_a_near_miss_is_said_before_a_costly_search_begins_and_while_it_goes_on() -> None:
    session = FixedSession()
    session.on_search = asks_first
    async with finding("idle>1h OR ttl:none", session) as (user, screen):
        await until(user.pilot, lambda: "there is no OR, all terms must match" in said(screen))
        await user.pilot.press("enter")
        await until(user.pilot, lambda: "No keys found yet." in said(screen))
        assert "there is no OR, all terms must match" in said(screen)


async def test_keys_that_come_after_the_user_has_sorted_are_sorted_at_the_end() -> None:
    session = FixedSession()
    rest: list[KeyRecord] = []

    def lists_some(search: FixedSearch) -> None:
        runs(search)
        rest.extend(search.kept[200::-2])
        search.kept = search.kept[1:200:2]

    session.on_search = lists_some
    async with finding("in:lock", session) as (user, screen):

        def listed() -> list[bytes]:
            return [record.key for record in screen.rows.shown()]

        await until(user.pilot, lambda: len(listed()) == 100)
        await user.pilot.press("s", "home", "down", "enter")
        await until(user.pilot, lambda: listed() == sorted(listed(), key=natural))
        await user.pilot.press(*["down"] * 5)
        record, search = screen.view.body.record, session.searches[0]
        search.kept = [*search.kept, *rest]
        search.changes += 1
        await until(user.pilot, lambda: len(listed()) > 100)
        assert listed() != sorted(listed(), key=natural)
        search.stage = Stage.OVER
        search.changes += 1
        await until(user.pilot, lambda: listed() == sorted(listed(), key=natural))
        body = screen.view.body
        await until(user.pilot, lambda: body.record == record and body.cursor_line - body.scroll_offset.y == 5)


def asks_first(search: FixedSearch) -> None:
    search.stage, search.plan = Stage.ASKING, SafeText("lists 2,000,000 names; about 14s at gentle pace")
    search.kept, search.count, search.progress = [], 0, Progress()


async def test_a_costly_search_says_what_it_costs_and_begins_with_enter() -> None:
    session = FixedSession()
    session.on_search = asks_first
    async with finding("ttl:none", session) as (user, screen):
        await until(user.pilot, lambda: "This lists 2,000,000 names; about 14s at gentle pace." in said(screen))
        assert "enter Search" in said(screen)
        assert [search.begun for search in session.searches] == [False]
        await user.pilot.press("enter")
        assert [search.begun for search in session.searches] == [True]
        await until(user.pilot, lambda: "No keys found yet." in said(screen))


def runs(search: FixedSearch) -> None:
    search.stage, search.mark, search.count = Stage.RUNNING, Mark.AT_LEAST, 48_211
    search.progress = Progress(ScanState.RUNNING, 0.4, 400_000, keys_per_s=90_000)


async def test_counts_are_at_least_until_all_is_seen_and_escape_ends_the_search_first() -> None:
    session = FixedSession()
    session.on_search = runs
    async with finding("in:lock", session) as (user, screen):
        await until(user.pilot, lambda: "the first 300 of ≥ 48,211 keys" in said(screen))
        assert "p Pause" in said(screen)
        await user.pilot.press("escape")
        assert session.searches[0].control.is_stopped
        assert user.pilot.app.screen is screen


def is_refused(search: FixedSearch) -> None:
    search.kept, search.count, search.progress = [], 0, Progress(ScanState.FAILED, None, 0)
    search.failure = RtuiError("The query can't be answered", "size>1M needs MEMORY USAGE: NOPERM.", "rtui acl helps.")


async def test_a_denied_term_is_said() -> None:
    session = FixedSession()
    session.on_search = is_refused
    async with finding("size>1M", session) as (user, screen):
        await until(user.pilot, lambda: "size>1M needs MEMORY USAGE: NOPERM." in said(screen))
        assert "rtui acl helps." in said(screen)


async def test_the_query_is_changed_in_place_also_where_nothing_is_found() -> None:
    async with finding("in:nowhere") as (user, screen):
        await until(user.pilot, lambda: "No keys match in:nowhere." in said(screen))
        assert "/ edits the query" in said(screen)
        await ask(user, screen, "in:lock")
        await user.pilot.press("slash")
        assert screen.query_input.value == "in:lock"
        await user.pilot.press(*keys_for(" 29"), "enter")
        await until(user.pilot, lambda: "in:lock 29  13 keys" in said(screen))
        assert user.pilot.app.screen is screen
        assert user.session.searches[0].closed


async def test_hostile_names_are_shown_and_written_safely(tmp_path: Path) -> None:
    async with finding("in:hostile") as (user, screen):
        await until(user.pilot, lambda: len(lines(screen)) == 5)
        for line in lines(screen):
            check_text(line)
        for suffix in ("txt", "csv", "json", "jsonl", "md"):
            await user.pilot.press("w")
            screen.file_input.value = str(tmp_path / f"found.{suffix}")
            await user.pilot.press("enter")
            await until(user.pilot, (tmp_path / f"found.{suffix}").exists)
        written = (tmp_path / "found.txt").read_text()
        assert len(written.splitlines()) == 5
        check_text(written.replace("\n", ""))
        assert len(json.loads((tmp_path / "found.json").read_text())["keys"]) == 5
        head, *rows = (tmp_path / "found.csv").read_text().splitlines()
        assert len(rows) == 6
        columns = head.removesuffix(",coverage,notes").split(",")
        assert columns == ["key", "key_quoted", "type", "ttl_ms", "memory_bytes"]
        *keys, end = map(json.loads, (tmp_path / "found.jsonl").read_text().splitlines())
        assert all(list(key) == columns for key in keys)
        assert (len(keys), end["count"], end["complete"]) == (5, 5, True)
        assert (tmp_path / "found.md").read_text().startswith(f"| {' | '.join(columns)} |")


@pytest.mark.parametrize(("ttl_ms", "left_ms"), [(2_500, 0), (9_500, 4_500), (-1, -1), (None, None)])
def test_a_time_to_live_in_a_file_is_a_number(ttl_ms: int | None, left_ms: int | None) -> None:
    assert as_of(KeyRecord(key=b"a", ttl_ms=ttl_ms, asked_at_s=1_000.0), 1_005.0).ttl_ms == left_ms


@pytest.mark.parametrize("name", ["found.exe", "found", "nowhere/found.csv", "folder.txt"])
async def test_a_file_that_cannot_be_written_leaves_its_name_to_be_changed(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.txt" / "full").mkdir(parents=True)
    path = str(tmp_path / name)
    async with finding("in:hostile") as (user, screen):
        await user.pilot.press("w")
        screen.file_input.value = path
        await user.pilot.press("enter")
        app = user.pilot.app
        await until(user.pilot, lambda: bool(app._notifications) and screen.file_input.is_open)
        assert screen.file_input.value == path
        assert app.focused is screen.file_input
        told = next(iter(app._notifications)).message
        assert (".txt, .csv, .md, .json or .jsonl" in told) is (name in ("found.exe", "found"))
        await user.pilot.press("escape")
        assert len(lines(screen)) == 5


async def test_found_keys_come_back_after_escape() -> None:
    async with finding("in:lock") as (user, _):
        await user.pilot.press("down", "escape")
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        await user.pilot.press("ctrl+o")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))
        back = user.pilot.app.screen
        assert isinstance(back, FindScreen)
        await until(user.pilot, lambda: names(back)[:1] == ["lock:order:0"])
        await user.pilot.press("slash", "up", "up")
        assert back.query_input.value == "in:lock"
        await user.pilot.press("escape", "escape")
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        await user.pilot.press("slash", *keys_for("lock:order:7"), "enter")
        await until(user.pilot, lambda: user.name == b"lock:order:7")
        filter_input = user.screen.filter_input
        await user.pilot.press("slash", "up")
        assert filter_input.value == "lock:order:7"
        await user.pilot.press("up")
        assert filter_input.value == "in:lock"
        await user.pilot.press("up", "enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))


async def test_more_than_is_listed_is_sorted_among_what_was_found_and_r_finds_the_top() -> None:
    session = FixedSession()

    def too_many(search: FixedSearch) -> None:
        search.count = 48_211

    session.on_search = too_many
    async with finding("in:lock", session) as (user, screen):
        await user.pilot.press(*["greater_than_sign"] * 4)
        await until(user.pilot, lambda: "press R for the top keys by memory" in said(screen))
        await user.pilot.press("R")
        await until(user.pilot, lambda: len(session.searches) == 2)
        assert known(session.searches[1].order).is_descending
        await until(user.pilot, lambda: "the top 300 by memory of 48,211 keys" in said(screen))


async def test_columns_are_switched_in_their_order_and_what_was_not_asked_is_said() -> None:
    async with finding("in:lock") as (user, screen):
        await until(user.pilot, lambda: bool(lines(screen)))
        assert list(screen.rows.columns) == ["key", "type", "ttl", "size"]
        await user.pilot.press("c")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, SwitchScreen))
        await user.pilot.press("G", "enter", "k", "k", "enter", "g", "enter")
        assert list(screen.rows.columns) == ["key", "ttl", "size", "idle", "slot"]
        await user.pilot.press("escape")
        await until(user.pilot, lambda: user.pilot.app.screen is screen)
        (said_of,) = [one.message for one in user.pilot.app._notifications]
        assert said_of == "OBJECT IDLETIME: read when R searches again."


async def test_rows_that_were_kept_are_shown_with_their_age() -> None:
    session = FixedSession()
    session.now_s += 43_200  # not right after midnight
    as_of_s = 0.0

    def keep(search: FixedSearch) -> None:
        search.as_of_s = as_of_s

    session.on_search = keep
    async with finding("in:shop", session) as (user, screen):
        for query, age_s, text in (
            ("in:lock  300 keys", 3, "UTC"),
            ("in:lock 29  13 keys", 190, "UTC, 3m ago"),
            ("in:lock  300 keys", 2 * 86_400, "UTC, 2d ago"),
        ):
            as_of_s = session.now_s - age_s
            await ask(user, screen, query.partition("  ")[0])
            shown = moment(as_of_s)[0 if age_s > 86_400 else 11 : 16]
            await until(user.pilot, lambda shown=f"{query}  as of {shown} {text}": shown in said(screen))  # type: ignore[misc]
            assert "rows kept from the analysis; R searches the server" in said(screen)
            assert "pace" not in said(screen)


@pytest.mark.parametrize(
    "line", ["cart", "user:42", "user:*:cart", "two words", "", "a:b", "tpye:hash", '"open', "price[", "x<"]
)
def test_what_may_be_a_name_is_no_query(line: str) -> None:
    assert not is_query(read(line), line)


@pytest.mark.parametrize("line", ["ttl:none", "cart type:hash", "!cart", "ttl<", "size>1X", "sise>1M", "slot:99999"])
def test_terms_right_or_wrong_are_a_query(line: str) -> None:
    assert is_query(read(line), line)


def under_the_line(line: QueryLine) -> str:
    return "\n".join("".join(span.text for span in one) for one in line.hint.lines)


async def test_what_a_term_takes_is_said_while_it_is_typed() -> None:
    async with browsing() as user:
        line = user.screen.filter_input
        await user.pilot.press("slash")
        await until(user.pilot, lambda: "text, a glob, or terms" in under_the_line(line))
        await user.pilot.press(*"ttl:")
        await until(user.pilot, lambda: "by remaining TTL" in under_the_line(line))
        assert "none" in under_the_line(line)
        await user.pilot.press(*"x")
        await until(user.pilot, lambda: "what is left" not in under_the_line(line))


async def test_tab_completes_terms_types_and_loaded_namespaces() -> None:
    async with browsing() as user:
        line = user.screen.filter_input
        await user.pilot.press("slash", *"typ", "tab")
        assert line.value == "type:"
        await user.pilot.press("h", "tab")
        assert line.value == "type:hash"
        await user.pilot.press("space", *"in:sh", "tab")
        assert line.value == "type:hash in:shop:"
        await user.pilot.press("tab")
        assert line.value == "type:hash in:shop:"
        assert user.has_keyboard(line)
        line.value = ""
        await user.pilot.press(*"ttl", "tab")
        first = line.value
        await user.pilot.press("tab")
        assert line.value != first
        await user.pilot.press("shift+tab")
        assert line.value == first


async def test_a_wrong_term_stays_in_the_line_and_says_what_was_meant() -> None:
    async with browsing(notifications=True) as user:
        line = user.screen.filter_input
        await user.pilot.press("slash", *keys_for("cart sise>1M"), "enter")
        await until(
            user.pilot,
            lambda: "There is no term “sise”" in under_the_line(line) and "tab meant: size" in under_the_line(line),
        )
        assert line.is_open
        assert isinstance(user.pilot.app.screen, BrowseScreen)
        assert user.session.searches == []
        assert (5, 9) in [(start, end) for start, end, _ in list(styled_parts(line.reading, line.value))]
        await user.pilot.press("tab")
        assert line.value == "cart size>1M"


async def test_what_is_wrong_is_said_once_and_enter_promises_nothing() -> None:
    async with browsing(notifications=True) as user:
        line = user.screen.filter_input
        await user.pilot.press("slash")
        for text in ("type:sting", "idle>", "cart len:many"):
            line.value = "type:string"
            await until(user.pilot, lambda: "enter finds the keys" in user.footer)
            line.value = ""
            await user.pilot.press(*keys_for(text))
            await until(user.pilot, lambda: "enter finds" not in user.footer and "esc goes back" in user.footer)
            await user.pilot.press("enter")
            message = str(line.reading.problems[0].message)[1:]
            await until(user.pilot, lambda message=message: message in under_the_line(line))  # type: ignore[misc]
            assert line.is_open
        assert not user.pilot.app._notifications


@pytest.mark.parametrize(("text", "meant"), [("tyep:hash", "type:hash"), ("TTL=none", "ttl:none")])
async def test_a_near_miss_is_said_while_it_is_typed_and_where_no_name_has_it(text: str, meant: str) -> None:
    async with browsing() as user:
        line = user.screen.filter_input
        await user.pilot.press("slash", *keys_for(text))
        await until(
            user.pilot, lambda: "searched as part of a name" in under_the_line(line) and meant in under_the_line(line)
        )
        await user.pilot.press("enter")
        panel = user.screen.query_one("#notice", LinePanel)
        await until(user.pilot, lambda: f"did you mean {meant}?" in "".join(one.text for one in sum(panel.lines, ())))


async def test_a_query_leaves_the_tree_as_it_is() -> None:
    async with browsing() as user:
        before = user.listed
        await user.pilot.press("slash", *"cart")
        await until(user.pilot, lambda: user.screen.tree_pane.names.needle == b"cart")
        await user.pilot.press(*keys_for(" ttl:none"))
        await until(user.pilot, lambda: user.screen.tree_pane.names.needle is None)
        await user.pilot.press("escape")
        await user.settled()
        assert user.listed == before


@given(st.text(max_size=60), st.integers(0, 60), st.integers(1, 200))
def test_hints_of_any_line_are_safe_and_fit(line: str, cursor: int, width: int) -> None:
    reading = read(line)
    is_query(reading, line)
    for shown in hint_lines(reading, complete(line, cursor), None, width):
        assert line_width(shown) <= width
        check_text("".join(span.text for span in shown))
    for start, end, _ in styled_parts(reading, line):
        assert 0 <= start <= end <= max(len(line), 1)


async def test_a_query_is_saved_under_a_name_and_found_by_it(tmp_path: Path) -> None:
    settings = SettingsFile(tmp_path / "settings.toml")
    async with browsing(notifications=True, settings=settings) as user:
        line = user.screen.filter_input
        await user.pilot.press("slash", *keys_for("in:lock !9"), "ctrl+s")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, NameScreen))
        await user.pilot.press(*"busy", "enter")
        await until(user.pilot, lambda: user.pilot.app.screen is user.screen)
        assert settings.settings.queries == {"10.0.0.5:6379": {"busy": "in:lock !9"}}
        assert user.has_keyboard(line)
        await user.pilot.press("escape", "slash", "@", "tab")
        assert line.value == "@busy"
        await until(user.pilot, lambda: "in:lock !9" in under_the_line(line))
        await user.pilot.press("enter")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, FindScreen))
        assert str(user.session.searches[0].query) == "in:lock !9"
    assert SettingsFile(tmp_path / "settings.toml").settings.queries == {"10.0.0.5:6379": {"busy": "in:lock !9"}}


@pytest.mark.parametrize("name", ["", "two words", "a.b", 'a"b', "x" * 41, "é"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(SettingsError):
        save_query(SettingsFile(), Target(), name, "ttl:none")


def test_only_known_names_are_replaced() -> None:
    saved = {"big": "size>1M", "old": "idle>30d"}
    assert expanded("@big in:shop @old", saved) == "size>1M in:shop idle>30d"
    assert expanded("me@big @other x@old", saved) == "me@big @other x@old"
    assert unknown_names("@bigg @zzz @big", saved) == {"bigg": "big", "zzz": None}


def marked(query: str, name: bytes, cells: int = 80) -> list[str]:
    """The highlighted parts."""
    spans = marked_spans(name, cut_middle(whole_name(name), cells), Marker(parse(query)), whole_name)
    return [str(span.text) for span in spans if span.role is Role.ACCENT]


@pytest.mark.parametrize(
    ("query", "name", "parts"),
    [
        ("cart", b"shop:CART:1", ["CART"]),
        ("Cart", b"shop:cart:1", []),
        ("user:*:cart", b"user:7:cart", ["user:", ":cart"]),
        (r"re:\d+$", b"user:42", ["42"]),
        ("shop cart", b"shop:cart", ["shop", "cart"]),
        ("!cart", b"shop:1", []),
        ("ttl:none", b"shop:1", []),
        ('"\\xc3"', "clé".encode(), ["é"]),
        ("cart", b"\x1b[cart", ["cart"]),
    ],
)
def test_what_was_searched_for_is_marked(query: str, name: bytes, parts: list[str]) -> None:
    assert marked(query, name) == parts


def test_in_a_name_that_is_cut_both_ends_are_marked() -> None:
    name = b"needle:" + b"x" * 100 + b":tail"
    assert marked("needle", name, 30) == ["needle"]
    assert marked("tail", name, 30) == ["tail"]
    assert marked("x" * 50, name, 30)


@given(st.binary(max_size=80), st.binary(min_size=1, max_size=4), st.integers(8, 60))
def test_marking_changes_no_text(name: bytes, needle: bytes, cells: int) -> None:
    shown = cut_middle(whole_name(name), cells)
    spans = marked_spans(name, shown, Marker(Query((Term("text", (needle,)),))), whole_name)
    assert "".join(span.text for span in spans) == shown


async def test_the_namespace_under_the_cursor_comes_first() -> None:
    async with browsing() as user:
        await user.press("home", "right")
        for rows in (0, 1, 2):
            await user.press(*["down"] * rows)
            here = user.cursor.namespace.path().decode()
            assert here.count(":") == 1 + (rows > 0)
            await user.pilot.press("slash", *"in:", "tab")
            assert user.screen.filter_input.value == f"in:{here}"
            await user.press("escape")
