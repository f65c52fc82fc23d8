"""The value beside the tree as one works with it: the keys, what they copy, open, find, write, and every state."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import stat
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import OptionList

from rtui.analysis.facts import KeyFacts, Reason, RowFacts, Unknown
from rtui.keyspace.text.display import SafeText
from rtui.server.facts.preview.page import (
    FIRST,
    Find,
    Meaning,
    Page,
    PageRange,
    Preview,
    PreviewColumn,
    PreviewKind,
    StringWindow,
    Unread,
)
from rtui.tui.browse.detail_fetcher import with_more
from rtui.tui.browse.preview_lines import position_text
from rtui.tui.browse.value_view import ItemKind, RowItem, RowOrder, ValueRow, sorted_rows
from rtui.tui.browse.value_writer import (
    LONGEST_LINE_BYTES,
    FileExists,
    SafeLines,
    ValueOutput,
    pager_command,
    run_pager,
    suggested_name,
    write_file,
    write_for_pager,
)
from rtui.tui.kit.choice import ChoiceScreen, SortScreen
from rtui.tui.kit.layout import display
from tests.conftest import known
from tests.tui.browsing import BrowseUser, browsing, until
from tests.tui.fixed_session import FixedSession

FIELDS = (PreviewColumn("field", Meaning.NAME), PreviewColumn("value", Meaning.VALUE))
NESTED = base64.b64encode(
    gzip.compress(json.dumps({"id": 106, "items": [{"sku": "A-1"}, {"sku": "B-7"}]}).encode(), mtime=0)
)
ROWS = ((b"email", b"ada@example.com"), (b"blob", NESTED), (b"big field", Unread(300_000)), (b"raw", b"\x1b[31m\xff"))


class ValueSession(FixedSession):
    """A session whose hashes have fields worth opening, and in which things can be found."""

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        shown = await super().preview(facts, page)
        if facts.type != b"hash":
            return shown
        page = FIRST if page is None else page
        base = replace(shown, page=page, rows=ROWS, first=0, total=50_000)
        if page.find is None:
            return base
        self.asked.append(f"find {page.find.text!r} from {page.position!r}")
        at = page.position if isinstance(page.position, int) else 0
        rows = tuple((b"field:%d" % (at + n), b"v") for n in range(2)) if page.find.text != b"none" else ()
        following = page.following(at + 2_000) if at < 48_000 else None
        return replace(base, rows=rows, first=None, looked_at=2_000, next_page=following)


HASH = b"shop:session:0042"


async def opened(user: BrowseUser, key: bytes = HASH) -> None:
    """Go to a key and give its value the keyboard."""
    await user.go(key)
    await user.press("enter")
    assert user.has_keyboard(user.screen.detail_pane.body)


def item_of(user: BrowseUser) -> RowItem:
    return known(user.screen.detail_pane.body.item)


def text_of(rows: Sequence[ValueRow]) -> str:
    return "\n".join("".join(span.text for span in row.line) for row in rows)


def titles(user: BrowseUser) -> str:
    return "".join(span.text for line in user.screen.detail_pane._tabs.lines for span in line)


async def choose(user: BrowseUser, *keys: str) -> list[str]:
    """Choose from a list that has opened; what it offered."""
    await until(user.pilot, lambda: isinstance(user.pilot.app.screen, ChoiceScreen))
    options = user.pilot.app.screen.query_one(OptionList)
    entries = [str(option.prompt) for option in options.options]
    await user.pilot.press(*keys)
    return entries


async def test_a_cursor_rests_on_fields_and_what_is_under_it_is_copied() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        assert item_of(user).name == b"email"
        await user.press("down", "j", "down")
        assert item_of(user).name == b"raw"
        await user.press("down")
        assert item_of(user).name == b"raw"
        await user.press("home")
        assert item_of(user).name == b"email"
        await user.press("end")
        assert item_of(user).name == b"raw"
        await user.press("y")
        assert user.pilot.app.clipboard == r'"\x1b[31m\xff"'
        await user.press("home", "y")
        assert user.pilot.app.clipboard == "ada@example.com"
        await user.pilot.press("down", "down", "Y")
        entries = await choose(user, "enter")
        await user.settled()
        assert entries[0] == "redis-cli: HGET"
        assert user.pilot.app.clipboard.endswith("""--quoted-input HGET shop:session:0042 '"big field"'""")


async def test_a_field_opens_decoded_folds_and_escape_goes_back_to_it() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        await user.press("down", "enter")
        assert "base64 › gzip › JSON" in titles(user)
        assert '"id": 106' in user.body
        assert '"A-1"' in user.body
        await user.press("down", "down", "space")
        assert '"A-1"' not in user.body
        await user.press("right", "right")
        assert '"A-1"' in user.body
        await user.press("left", "left")
        assert '"A-1"' not in user.body
        await user.press("d", "d", "enter")
        assert "base64 › gzip › text" in titles(user)
        await user.press("escape")
        assert item_of(user).name == b"blob"
        assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("escape")
        assert user.has_keyboard(user.screen.tree_pane.key_tree)


async def test_a_field_that_was_too_large_for_the_page_is_read_when_it_is_opened() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        await user.press("down", "down", "enter")
        assert user.session.asked == ["field b'big field'"]
        assert "the whole value of big field" in user.body


async def test_a_part_of_a_name_is_found_page_by_page_and_escape_shows_all_again() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        await user.press("slash", *"field:", "enter")
        assert user.session.asked == [f"find b'field:' from {at}" for at in range(0, 50_000, 2_000)]
        assert item_of(user).name == b"field:0"
        assert "50 matches · 50,000 of 50,000 scanned" in titles(user) or "50 matches in 50,000" in titles(user)
        await user.press("escape")
        assert item_of(user).name == b"email"
        assert user.has_keyboard(user.screen.detail_pane.body)


async def test_what_is_not_there_says_so() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        await user.press("slash", *"none", "enter")
        assert "Nothing matches none" in user.body
        await user.press("escape", "slash", "escape")
        assert user.has_keyboard(user.screen.detail_pane.body)
        assert "email" in user.body


async def test_the_next_page_is_fetched_also_while_the_key_is_asked_again() -> None:
    held = asyncio.Event()
    held.set()

    class PagedSession(FixedSession):
        """A session whose values have many pages, and whose facts wait."""

        async def key_facts(self, key: bytes, row: RowFacts | None = None) -> KeyFacts:
            await held.wait()
            return await super().key_facts(key, row)

        async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
            page = FIRST if page is None else page
            return replace(await super().preview(facts, page), next_page=page.following(page.number * 100))

    async with browsing(PagedSession()) as user:
        await opened(user)
        fetcher = user.screen.detail_pane.fetcher
        held.clear()
        await user.pilot.press("r")
        await until(user.pilot, lambda: fetcher.detail.facts is None)
        await user.pilot.press("n")
        await until(user.pilot, lambda: fetcher.detail.preview is not None)
        assert known(fetcher.detail.preview).page.number == 2


async def test_in_a_decoded_value_text_is_found_and_a_part_is_copied_as_json() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        await user.press("down", "enter", "slash", *"sku", "enter")
        first = user.screen.detail_pane.body.cursor_line
        assert item_of(user).data == b"A-1"
        await user.press("n")
        assert item_of(user).data == b"B-7"
        await user.press("n")
        assert user.screen.detail_pane.body.cursor_line == first
        await user.press("end", "left", "y")
        assert json.loads(user.pilot.app.clipboard) == {"sku": "B-7"}
        await user.pilot.press("Y")
        entries = await choose(user, "escape")
        assert "all that is in it, as JSON" in entries


class LongSession(FixedSession):
    """A session in which a string is a beginning of JSON."""

    data = b'{"a": [' + b"1234, " * 8_000

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        page = FIRST if page is None else page
        at = page.position if isinstance(page.position, int) else 0
        window = StringWindow(at, self.data[at : at + 4_096])
        following = page.following(at + 4_096)
        total = 268_435_456
        return Preview(facts.key, facts.type, PreviewKind.TEXT, page, total, window=window, next_page=following)

    async def string_windows(self, facts: KeyFacts) -> AsyncIterator[bytes | Unknown]:
        yield self.data


async def test_what_is_decoded_from_the_beginning_has_no_pages_and_its_bytes_do() -> None:
    async with browsing(LongSession(), notifications=True) as user:
        await opened(user, b"huge")
        assert "JSON d · first 46.9 KiB of 256 MiB" in titles(user)
        assert "n Next page" not in user.footer
        await user.press("n")
        assert "Decoded values have no pages" in next(iter(user.pilot.app._notifications)).message
        await user.press("d", "d", "enter")
        assert "text by hand d · bytes 0–4,096  n ›" in titles(user)
        assert "n Next page" in user.footer
        await user.press("n")
        assert "bytes 4,096–8,192" in titles(user)


async def test_an_index_is_gone_to_escape_goes_back_from_each_place_and_then_to_the_tree() -> None:
    async with browsing(notifications=True) as user:
        await opened(user, b"jobs")
        for place, shown in ((100, "101–200 of 300"), (200, "201–300 of 300")):
            assert "n Next page" in user.footer
            await user.press("o", *str(place), "enter")
            assert shown in titles(user)
            assert f"place {place}" in user.session.asked
            assert item_of(user).cell(Meaning.INDEX) == place
        assert "n Next page" not in user.footer
        for shown in ("101–200 of 300", "1–100 of 300"):
            await user.press("escape")
            assert shown in titles(user)
            assert user.has_keyboard(user.screen.detail_pane.body)
        await user.press("o", "x", "enter")
        assert any("not a whole number" in notice.message for notice in user.pilot.app._notifications)
        await user.press("o", *"100", "enter", "tab")
        await user.until(lambda: user.has_keyboard(user.screen.tree_pane.key_tree))
        await opened(user, HASH)
        await user.press("tab")
        await opened(user, b"jobs")
        await user.press("escape")  # a place in another key is none in this one
        assert user.has_keyboard(user.screen.tree_pane.key_tree)


async def test_the_footer_begins_with_what_belongs_to_the_value() -> None:
    async with browsing(size=(80, 24)) as user:
        await opened(user, b"jobs")
        assert user.footer.split("  ")[:5] == [" enter Open", "n Next page", "esc Back", "/ Find inside", "o Go to"]
        assert user.footer.rstrip().endswith("? Help  q Quit")
        await user.pilot.resize_terminal(200, 50)
        await user.until(lambda: "P Pager" in user.footer or "a Analyse" in user.footer)
        assert user.footer.index("w Export") < user.footer.index("a Analyse") < user.footer.index(": Go to")


async def test_what_can_be_opened_says_so_and_what_can_not_does_not() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        assert "enter Open" in user.footer
        await user.press("tab")
        await opened(user, b"bits")
        assert "enter Open" not in user.footer


async def test_the_position_is_said_in_narrow_terminals() -> None:
    async with browsing(size=(40, 20)) as user:
        await opened(user, b"jobs")
        await user.press("n")
        assert "101–200 of 300" in titles(user)


async def test_rows_are_sorted_by_each_column_and_a_part_says_so() -> None:
    async with browsing() as user:
        await opened(user, b"jobs")
        await user.press("greater_than_sign", "S")
        assert item_of(user).cell(Meaning.INDEX) in range(100)
        await user.press("home")
        assert item_of(user).cell(Meaning.INDEX) == 99
        assert "sorted" in titles(user)
        await user.press("greater_than_sign", "greater_than_sign")
        await user.press("home")
        assert item_of(user).cell(Meaning.INDEX) == 0
        assert "sorted" not in titles(user)
        await user.pilot.press("s")
        await until(user.pilot, lambda: isinstance(user.pilot.app.screen, SortScreen))
        await user.press("down", "enter", "S", "home")
        assert item_of(user).cell(Meaning.INDEX) == 99


async def test_a_string_is_written_whole_and_nothing_is_replaced_without_a_question(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    async with browsing(notifications=True) as user:
        await opened(user, b"plain")
        prompt = user.screen.detail_pane.value.prompt
        await user.press("w")
        assert prompt.value == "plain.json"
        prompt.value = str(path)
        await user.press("enter")
        assert path.read_bytes() == b"first window, second window"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.write_bytes(b"kept")
        for answer, content in ((("enter",), b"kept"), (("down", "enter"), b"first window, second window")):
            await user.press("w")
            prompt.value = str(path)
            await user.pilot.press("enter")
            assert await choose(user, *answer) == ["Keep the file", "Replace the file"]
            await user.settled()
            assert path.read_bytes() == content
        await user.press("w")
        prompt.value = str(tmp_path / "no such folder" / "x")
        await user.press("enter")
        assert any("No such file" in notice.message for notice in user.pilot.app._notifications)
    assert [one.name for one in tmp_path.iterdir()] == ["value.json"]  # noqa: ASYNC240 - a test may wait for it


@pytest.mark.slow
@pytest.mark.sampled("size", "key")
@pytest.mark.parametrize("size", [(40, 20), (80, 24)], ids=str)
@pytest.mark.parametrize(
    "key", [HASH, b"jobs", b"ranking", b"events", b"plain", b"bits", b"gone", b"huge", b"secret", b""]
)
async def test_every_keypress_does_no_harm_in_every_kind_of_value(size: tuple[int, int], key: bytes) -> None:
    async with browsing(ValueSession(), size=size) as user:
        await opened(user, key)
        await user.press(
            "greater_than_sign", "S", "d", "space", "left", "right", "pagedown", "end", "pageup", "home", "enter"
        )
        await user.press("slash", "x", "enter", "o", "1", "enter", "n", "b")
        while not user.has_keyboard(user.screen.tree_pane.key_tree):
            await user.press("escape")


class EndlessSession(FixedSession):
    """A session whose strings never end."""

    async def string_windows(self, facts: KeyFacts) -> AsyncIterator[bytes | Unknown]:
        yield b"first window"
        await asyncio.Event().wait()


async def test_escape_ends_what_is_written_or_read_for_the_pager(tmp_path: Path) -> None:
    async with browsing(EndlessSession(), notifications=True) as user:
        await user.go(b"plain")
        await user.pilot.press("enter", "w")
        prompt = user.screen.detail_pane.value.prompt
        await user.until(lambda: prompt.is_open)
        prompt.value = str(tmp_path / "file")
        await user.pilot.press("enter")
        await user.until(lambda: any(tmp_path.iterdir()))
        await user.pilot.press("escape")
        await user.until(lambda: not any(tmp_path.iterdir()))
        titles = [notice.title for notice in user.pilot.app._notifications]
        assert [title for title in titles if title != "Reading the value"] == [
            "Stopped"
        ]  # that comes when it takes long
        assert user.has_keyboard(user.screen.detail_pane.body)


async def test_without_a_terminal_to_give_away_the_pager_says_so() -> None:
    async with browsing(notifications=True) as user:
        await opened(user, b"plain")
        await user.pilot.press("P")
        entries = await choose(user, "enter")
        await user.settled()
        assert [entry.rpartition(", ")[2] for entry in entries] == ["made safe", "raw bytes"]
        assert any("can't run another program" in notice.message for notice in user.pilot.app._notifications)


def output(*pieces: bytes | Unknown) -> ValueOutput:
    async def each() -> AsyncIterator[bytes | Unknown]:
        for piece in pieces:
            yield piece

    return ValueOutput(SafeText("it"), ".bin", each)


async def test_what_ends_early_is_written_as_far_as_it_went_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "file"
    written = await write_file(path, output(b"abc", Unknown(Reason.GONE, "it is gone")))
    assert (written.size_bytes, written.why_cut) == (3, "it is gone")
    with pytest.raises(FileExists):
        await write_file(path, output(b"other"))
    assert path.read_bytes() == b"abc"


async def test_the_pager_gets_safe_text_or_the_bytes_from_a_private_file(tmp_path: Path) -> None:
    copy = tmp_path / "seen"
    pager = tmp_path / "pager"
    pager.write_text(f'#!/bin/sh\ncp "$2" {copy}; test "$1" = -x\n')
    pager.chmod(0o700)
    for is_safe, expected in ((True, "␛[31mred\nnext\n".encode()), (False, b"\x1b[31mred\nnext")):
        path = await write_for_pager(output(b"\x1b[31mred\nnext"), is_safe=is_safe)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert run_pager(path, {"PAGER": f"{pager} -x", "PATH": "/usr/bin:/bin"}) == 0
        assert copy.read_bytes() == expected
        path.unlink()
    assert pager_command({}) == ["less"]
    assert pager_command({"PAGER": "'"}) == ["less"]


@given(st.text(st.sampled_from("a\u017c\n\x1b\U0001f600"), max_size=60), st.data())
def test_text_is_made_safe_in_pieces_as_it_is_at_once(text: str, data: st.DataObject) -> None:
    whole, pieces = text.encode(), SafeLines()
    ends = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    parts = [whole[start:end] for start, end in pairwise([0, *ends, len(whole)])]
    made = b"".join([*map(pieces.add, parts), pieces.end()])
    lines = whole.removesuffix(b"\n").split(b"\n") if whole else []
    assert made == "".join(f"{display(line, limit=1_000)}\n" for line in lines).encode()


def test_a_line_without_an_end_is_broken_between_characters() -> None:
    pieces = SafeLines()
    text = "\u017c".encode() * (LONGEST_LINE_BYTES // 2 + 10)
    made = b"".join([pieces.add(text[:-1]), pieces.add(text[-1:]), pieces.end()])
    assert made.replace(b"\n", b"") == text
    assert made.count(b"\n") == 2


@given(st.binary())
def test_a_suggested_name_is_a_plain_file_name(key: bytes) -> None:
    name = suggested_name(key, ".bin")
    assert Path(name).name == name
    assert name.isascii()
    assert not name.startswith((".", "-"))


COUNTS = st.integers(1, 100)


@given(pages=st.lists(COUNTS, min_size=1, max_size=30))
def test_positions_follow_one_another_and_end_at_the_total(pages: list[int]) -> None:
    total, page, before = sum(pages), FIRST, 0
    for count in pages:
        rows = tuple((b"f", b"v") for _ in range(count))
        shown = Preview(b"k", b"hash", PreviewKind.HASH, page, total, columns=FIELDS, rows=rows, first=page.seen)
        first, last = before + 1, before + count
        assert position_text(shown) == f"{first:,}{f'–{last:,}' if count > 1 else ''} of {total:,}"
        page, before = page.following(before + count, shown=count), last


def test_positions_say_what_they_do_not_know() -> None:
    rows = ((b"f", b"v"), (b"g", b"v"))
    base = Preview(b"k", b"hash", PreviewKind.HASH, total=1, columns=FIELDS, rows=rows, first=0)
    assert position_text(base) == "1–2 of ≥ 2"
    assert position_text(replace(base, total=Unknown(Reason.DENIED))) == "1–2"
    assert position_text(replace(base, first=None, total=50)) == "2 of 50"
    refused = replace(base, rows=(), page=Page(find=Find(b"x")), refusal=Unknown(Reason.DENIED))
    assert position_text(refused) == ""
    assert position_text(replace(refused, looked_at=100, total=200)) == "0 matches · 100 of 200 scanned"
    span = Page(5, seen=0, span=PageRange(SafeText("score 1 to 2"), 9, 5))
    assert position_text(replace(base, page=span, total=50)) == "1–2 of 5 · score 1 to 2"
    found = replace(base, page=Page(find=Find(b"x")), total=50, looked_at=2_000)
    assert position_text(found) == "2 matches · 50 of 50 scanned"
    assert position_text(replace(found, total=Unknown(Reason.DENIED)), is_short=True) == "2 matches in 2,000"
    window = replace(base, rows=(), columns=(), window=StringWindow(4_096, b"x" * 4_096), total=500_000_000)
    assert position_text(window) == "bytes 4,096–8,192 of 500,000,000"


CELLS = st.none() | st.integers() | st.floats(allow_nan=False) | st.binary(max_size=4)


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=4) | st.integers(), CELLS)), st.booleans())
def test_sorting_loses_no_row_and_puts_equals_in_order(
    rows: list[tuple[bytes | int, bytes | float | None]], is_reversed: bool
) -> None:
    found = [row for row, _ in sorted_rows(rows, RowOrder(1, is_reversed))]
    assert sorted(map(repr, found)) == sorted(map(repr, rows))
    numbers = [row[1] for row in found if isinstance(row[1], int | float)]
    assert numbers == sorted(numbers, reverse=is_reversed)


def test_fields_of_an_entry_stay_below_it() -> None:
    rows = [(b"2-0", b"kind", b"b"), (None, b"user", b"1"), (b"1-0", b"kind", b"a")]
    assert sorted_rows(rows, RowOrder(2)) == [(rows[2], b"1-0"), (rows[0], b"2-0"), (rows[1], b"2-0")]


def test_what_is_found_later_is_added_with_the_columns_of_both() -> None:
    base = Preview(b"k", b"hash", PreviewKind.HASH, columns=FIELDS, rows=((b"a", b"1"),), looked_at=10)
    wide = replace(
        base, columns=(*FIELDS, PreviewColumn("TTL", Meaning.DURATION_MS)), rows=((b"b", b"2", 5),), looked_at=7
    )
    both = with_more(base, wide)
    assert both.rows == ((b"a", b"1", None), (b"b", b"2", 5))
    assert both.looked_at == 17


def test_a_row_is_what_its_columns_say() -> None:
    item = RowItem(ItemKind.ELEMENT, b"v", FIELDS, (b"f", b"v"))
    assert item.name == b"f"
    assert item.cell(Meaning.SCORE) is None
