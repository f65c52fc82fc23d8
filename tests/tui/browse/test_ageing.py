"""What time does to facts that were asked once: they count down, grow old, and are asked again when they ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.facts import NO_TTL, KeyFacts, RowFacts, Ttl, gone_key, gone_row
from rtui.keyspace.rows.rows import Row, VisibleRows
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.server.facts.preview.page import FIRST
from rtui.server.wire.connection import Lost
from rtui.tui.browse.columns import FACT_COLUMNS, TreeColumn, lay_out_row
from rtui.tui.browse.detail_fetcher import Detail
from rtui.tui.browse.detail_pane import head_lines, tab_lines
from rtui.tui.browse.document import open_document
from rtui.tui.browse.fact_lines import age_line, name_lines
from rtui.tui.browse.row_facts import HOLD_S, RowFactsCache
from rtui.tui.browse.shown_value import OpenedDocument, ShownValue, Tab
from rtui.tui.browse.tree_lines import TreeTotals, row_line
from rtui.tui.kit.styled_text import Line, line_width
from tests.tui.browsing import BrowseUser, browsing
from tests.tui.fixed_session import ASKED_AT_S, COMPLETE, FixedSession, key_facts, preview, row_facts

KEY = b"job"
BOTH_SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)


class Expiring(FixedSession):
    def __init__(self, ttl: Ttl = 7_000) -> None:
        super().__init__(COMPLETE, [KEY, b"other"])
        self.ttl: Ttl = ttl
        self.is_gone = False
        self.rows_asked: list[bytes] = []

    async def row_facts(self, wanted: Sequence[bytes], *, with_more: bool = False) -> list[RowFacts]:
        self.rows_asked += wanted
        return [self._row(key) for key in wanted]

    async def key_facts(self, key: bytes, row: RowFacts | None = None) -> KeyFacts:
        if self.failure is not None:
            raise self.failure
        if self.is_gone and key == KEY:
            return gone_key(key, self.now_s)
        return replace(key_facts(key), ttl_ms=self.ttl if key == KEY else NO_TTL, asked_at_s=self.now_s)

    def _row(self, key: bytes) -> RowFacts:
        if self.is_gone and key == KEY:
            return gone_row(key, self.now_s)
        return replace(row_facts(key), ttl_ms=self.ttl if key == KEY else NO_TTL, asked_at_s=self.now_s)


def said(lines: Sequence[Line]) -> str:
    return " ".join("".join(span.text for span in line) for line in lines)


def row_text(user: BrowseUser, key: bytes = KEY) -> str:
    """What the row of a key says, as it is painted."""
    tree = user.screen.tree_pane.key_tree
    number = next(at for at, row in enumerate(tree.rows_in_view) if row.key() == key)
    return "".join(span.text for span in tree._painted.get(number, ()))


def detail_text(user: BrowseUser) -> str:
    """What head, tabs and one-line summary of the details say."""
    panels = (user.screen.detail_pane._head, user.screen.detail_pane._tabs, user.screen.detail_pane.summary)
    return "\n".join("".join(span.text for span in line) for panel in panels for line in panel.lines)


async def pass_time(user: BrowseUser, seconds: float) -> None:
    """Let time go by, and the screen look at the clock."""
    user.session.now_s += seconds
    user.screen._ticked_at_s = 0.0
    user.screen.flush()
    await user.pilot.pause()


@BOTH_SIZES
async def test_a_time_to_live_runs_down_in_the_row_and_in_the_details(size: tuple[int, int]) -> None:
    async with browsing(Expiring(), size) as user:
        await user.go(KEY)
        await user.until(lambda: "7s" in row_text(user))
        assert "7s" in detail_text(user)
        user.session.now_s += 3
        async with asyncio.timeout(20):
            while "4s" not in row_text(user) or "4s" not in detail_text(user):
                await user.pilot.pause(0.02)


async def test_what_has_expired_says_so_and_is_asked_again() -> None:
    session = Expiring()
    async with browsing(session) as user:
        await user.go(KEY)
        session.is_gone = True
        await pass_time(user, 7.5)
        await user.until(lambda: "expired" in row_text(user))
        await user.until(lambda: "expired" in detail_text(user))
        await pass_time(user, 2)
        await user.until(lambda: "gone" in row_text(user))
        await user.until(lambda: "no longer exists" in detail_text(user))


async def test_a_life_that_was_prolonged_counts_down_anew() -> None:
    session = Expiring()
    async with browsing(session) as user:
        await user.go(KEY)
        session.ttl = 50_000
        await pass_time(user, 10)
        await user.until(lambda: "50s" in row_text(user))
        await user.until(lambda: "50s" in detail_text(user))


async def test_a_key_that_the_details_found_gone_is_gone_in_the_tree() -> None:
    session = Expiring()
    async with browsing(session) as user:
        await user.go(KEY)
        session.is_gone = True
        asked = len(session.rows_asked)
        await user.go(b"other")
        user.screen.detail_pane.fetcher.show_key(KEY)
        await user.until(lambda: "gone" in row_text(user))
        assert len(session.rows_asked) == asked


async def test_a_key_that_its_row_found_gone_is_gone_in_the_details() -> None:
    session = Expiring()
    async with browsing(session) as user:
        await user.go(KEY)
        session.is_gone = True
        user.screen.tree_pane.invalidate_facts()
        await user.until(lambda: "no longer exists" in detail_text(user))


@BOTH_SIZES
async def test_old_facts_say_how_old_they_are(size: tuple[int, int]) -> None:
    async with browsing(Expiring(NO_TTL), size) as user:
        await user.go(KEY)
        assert "updated" not in detail_text(user)
        await pass_time(user, 25)
        await user.until(lambda: "updated 20s ago" in detail_text(user))
        await pass_time(user, 100)
        await user.until(lambda: "updated 2m ago" in detail_text(user))


@pytest.mark.parametrize("width", [30, 46, 80])
def test_each_age_is_that_of_what_was_asked(width: int) -> None:
    facts = replace(key_facts(KEY), asked_at_s=ASKED_AT_S)
    together = Detail(None, KEY, facts, preview(facts, FIRST), value_at_s=ASKED_AT_S + 0.2)
    updated = "updated " if width > 30 else ""  # the number stays where there is no room for the word
    for detail, opened_at_s, ages in (
        (together, None, (False, f"{updated}1m ago")),
        (replace(together, value_at_s=ASKED_AT_S + 40), None, (True, f"{updated}20s ago")),
        (together, ASKED_AT_S + 45, (True, "updated 10s ago" if width > 30 else "")),  # the decoder comes first
        (together, ASKED_AT_S + 59, (True, "")),
    ):
        value, now_s = ShownValue(), ASKED_AT_S + 60
        value.update(detail, Tab.VALUE)
        if opened_at_s is not None:
            value.opened.append(OpenedDocument(SafeText("field"), open_document(b"text"), 0, asked_at_s=opened_at_s))
        has_age = value.read_apart_at_s is not None
        head = head_lines(detail, TreeTotals(complete=True), now_s, width, has_age=has_age)
        tabs = tab_lines(value, now_s, width)
        shown = re.search(r"(updated )?\d+\w ago.*", said(tabs))
        assert ("updated 1m ago" in said(head), shown.group().strip() if shown else "") == ages
        assert max(map(line_width, (*head, *tabs))) <= width


@pytest.mark.parametrize("name", ["short", "n" * 45, "m" * 60, "longest" * 20])
def test_a_name_leaves_room_for_the_age_of_its_facts(name: str) -> None:
    note = age_line(0.0, 60.0)
    lines = name_lines(SafeText(name), 40, note=note)
    assert len(lines) == 2
    assert said(lines).rstrip().endswith("updated 1m ago")
    assert max(map(line_width, lines)) <= 40


async def test_a_page_that_is_turned_to_is_younger_than_the_facts() -> None:
    async with browsing(FixedSession(COMPLETE, [b"jobs"])) as user:
        await user.go(b"jobs")
        await pass_time(user, 65)
        await user.until(lambda: "updated 1m ago" in detail_text(user))
        user.screen.detail_pane.fetcher.go_to("200")
        await user.until(lambda: user.screen.detail_pane.detail.value_at_s == user.session.now_s)
        pane = user.screen.detail_pane
        await user.until(lambda: "updated 1m ago" in said(pane._head.lines))
        assert "updated" not in said(pane._tabs.lines)


async def test_nothing_is_asked_of_a_server_that_is_lost() -> None:
    session = Expiring()
    async with browsing(session) as user:
        await user.go(KEY)
        asked = len(session.rows_asked)
        session.status = replace(session.status, link=Lost(None, 1, 0.0))
        await pass_time(user, 60)
        await user.until(lambda: "expired" in row_text(user))
        await pass_time(user, 1)
        assert len(session.rows_asked) == asked


async def test_a_second_in_which_nothing_changes_paints_nothing() -> None:
    async with browsing(Expiring(5 * 3_600_000 + 90_000)) as user:
        await user.go(KEY)
        user.session.now_s += 2
        painted: list[object] = []
        tree = user.screen.tree_pane.key_tree
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tree, "refresh", lambda *regions, **_: painted.append(regions))
            user.screen.tree_pane.key_tree.repaint_changes()
        assert painted == []


def listed(key: bytes) -> Row:
    store = NamespaceStore()
    store.add([key])
    (row,) = VisibleRows(store).window(0, 1)
    return row


def test_facts_that_are_long_known_are_asked_again_when_they_come_into_view() -> None:
    now = [ASKED_AT_S]
    cache = RowFactsCache(lambda: now[0])
    row = listed(KEY)
    assert cache.missing([row]) == [KEY]
    cache.put([RowFacts(KEY, b"string", NO_TTL, 64, now[0])])
    assert cache.missing([row]) == []
    now[0] += HOLD_S + 1
    assert cache.due_again([row]) == []
    assert cache.missing([row]) == [KEY]
    assert cache.get(KEY) is not None


def test_facts_in_doubt_are_shown_until_others_come() -> None:
    cache = RowFactsCache(lambda: ASKED_AT_S)
    row = listed(KEY)
    facts = RowFacts(KEY, b"string", NO_TTL, 64, ASKED_AT_S)
    cache.put([facts])
    cache.invalidate()
    assert cache.get(KEY) is facts
    assert cache.due_again([row]) == [KEY]
    cache.put([facts])
    assert cache.due_again([row]) == []


def test_within_one_second_the_facts_are_the_same_object() -> None:
    now = [ASKED_AT_S]
    cache = RowFactsCache(lambda: now[0])
    cache.put([RowFacts(KEY, b"string", 60_000, 64, now[0])])
    now[0] += 0.5
    first = cache.get(KEY)
    now[0] += 0.4
    assert cache.get(KEY) is first
    now[0] += 0.2
    assert cache.get(KEY) is not first


@given(
    st.integers(24, 200),
    st.sampled_from([frozenset(TreeColumn), frozenset(TreeColumn) - {TreeColumn.TYPE}, FACT_COLUMNS]),
)
def test_what_became_of_a_key_is_said_wherever_keys_have_a_place(width: int, columns: frozenset[TreeColumn]) -> None:
    found = lay_out_row(width, columns)
    row, whole = listed(KEY), TreeTotals(complete=True)
    expired = RowFacts(KEY, b"string", 0, 64, ASKED_AT_S)
    for facts, word in ((gone_row(KEY, ASKED_AT_S), "gone"), (expired, "exp")):
        text = "".join(span.text for span in row_line(row, found, whole, is_open=False, facts=facts))
        assert (word in text) == any(place.key is not None for place in found.fields)


def age(seconds: float) -> str:
    return "".join(span.text for span in age_line(0.0, seconds))


def test_an_age_is_told_in_steps() -> None:
    assert [age(seconds) for seconds in (-5, 9.9, 10, 59, 60, 3_599, 3_600, 90_000)] == [
        "", "", "updated 10s ago", "updated 50s ago", "updated 1m ago",
        "updated 59m ago", "updated 1h ago", "updated 1d ago",
    ]  # fmt: skip


@pytest.mark.parametrize("size", [30, 60, 500])
@pytest.mark.parametrize("width", [40, 78])
def test_a_name_of_mixed_scripts_says_so_however_long_it_is(size: int, width: int) -> None:
    name = "a\u0430" + "b" * size
    lines = name_lines(SafeText(name), width, raw=name.encode())
    assert "mixes scripts" in "".join(span.text for span in lines[-1])
    assert all(line_width(line) <= width for line in lines)
    plain = name_lines(SafeText("a" * size), width, raw=b"a" * size)
    assert "mixes" not in "".join(span.text for line in plain for span in line)
