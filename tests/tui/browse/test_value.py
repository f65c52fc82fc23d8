"""The value beside the tree as one works with it: the keys, what they copy, open, find, write, and every state."""

from __future__ import annotations

import base64
import gzip
import json
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import OptionList

from rtui.analysis.facts import KeyFacts, Reason, Unknown
from rtui.keyspace.text.display import SafeText
from rtui.server.facts.preview.page import (
    FIRST,
    Find,
    Meaning,
    Page,
    Preview,
    PreviewColumn,
    PreviewKind,
    Span,
    StringWindow,
    Unread,
)
from rtui.tui.browse.detail_fetcher import with_more
from rtui.tui.browse.preview_lines import position_text
from rtui.tui.browse.value_files import (
    FileExists,
    Output,
    pager_command,
    run_pager,
    suggested_name,
    write_file,
    write_for_pager,
)
from rtui.tui.browse.value_rows import Item, ItemKind, RowOrder, sorted_rows
from rtui.tui.kit.choice import ChoiceScreen
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
    assert user.screen.detail_pane.body.has_focus


def item_of(user: BrowseUser) -> Item:
    item = user.screen.detail_pane.body.item
    assert item is not None
    return item


def titles(user: BrowseUser) -> str:
    """What stands beside the tabs."""
    return "".join(span.text for line in user.screen.detail_pane._tabs.lines for span in line)


async def choose(user: BrowseUser, *keys: str) -> list[str]:
    """Choose from a list that has opened; what it offered."""
    await until(user.pilot, lambda: isinstance(user.pilot.app.screen, ChoiceScreen))
    options = user.pilot.app.screen.query_one(OptionList)
    entries = [str(option.prompt) for option in options.options]
    await user.pilot.press(*keys)
    return entries


async def test_a_cursor_rests_on_fields_and_skips_what_is_none() -> None:
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


async def test_what_is_under_the_cursor_is_copied_and_its_command_is_the_first_choice() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        await user.press("y")
        assert user.pilot.app.clipboard == "ada@example.com"
        await user.pilot.press("down", "down", "Y")
        entries = await choose(user, "enter")
        await user.settled()
        assert entries[0] == "redis-cli: HGET"
        assert user.pilot.app.clipboard.endswith("""--quoted-input HGET shop:session:0042 '"big field"'""")
        await user.press("end", "y")
        assert user.pilot.app.clipboard == r'"\x1b[31m\xff"'


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
        await user.press("d")
        assert "base64 › gzip › text" in titles(user)
        await user.press("escape")
        assert item_of(user).name == b"blob"
        assert user.screen.detail_pane.body.has_focus
        await user.press("escape")
        assert user.screen.tree_pane.key_tree.has_focus


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
        assert "50 found · 50,000 of 50,000 looked at" in titles(user) or "50 found in 50,000" in titles(user)
        await user.press("escape")
        assert item_of(user).name == b"email"
        assert user.screen.detail_pane.body.has_focus


async def test_what_is_not_there_says_so() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        await user.press("slash", *"none", "enter")
        assert "Nothing here matches none" in user.body
        await user.press("escape", "slash", "escape")
        assert user.screen.detail_pane.body.has_focus
        assert "email" in user.body


async def test_text_is_found_in_what_was_decoded() -> None:
    async with browsing(ValueSession()) as user:
        await opened(user)
        await user.press("down", "enter", "slash", *"sku", "enter")
        first = user.screen.detail_pane.body.cursor_line
        assert item_of(user).data == b"A-1"
        await user.press("n")
        assert item_of(user).data == b"B-7"
        await user.press("n")
        assert user.screen.detail_pane.body.cursor_line == first


async def test_an_index_is_gone_to_and_a_wrong_one_is_said() -> None:
    async with browsing(notifications=True) as user:
        await opened(user, b"jobs")
        await user.press("o", *"200", "enter")
        assert "place 200" in user.session.asked
        assert item_of(user).cell(Meaning.INDEX) == 200
        assert "201–300 of 300" in titles(user)
        await user.press("b")
        assert "101–200 of 300" in titles(user)
        await user.press("o", "x", "enter")
        assert any("no whole number" in notice.message for notice in user.pilot.app._notifications)


async def test_the_position_is_said_in_narrow_terminals() -> None:
    async with browsing(size=(40, 20)) as user:
        await opened(user, b"jobs")
        await user.press("n")
        assert "101–200 of 300" in titles(user)


async def test_rows_are_sorted_by_each_column_and_a_part_says_so() -> None:
    async with browsing() as user:
        await opened(user, b"jobs")
        await user.press("s", "S")
        assert item_of(user).cell(Meaning.INDEX) in range(100)
        await user.press("home")
        assert item_of(user).cell(Meaning.INDEX) == 99
        assert "sorted" in titles(user)
        await user.press("s", "s")
        await user.press("home")
        assert item_of(user).cell(Meaning.INDEX) == 0
        assert "sorted" not in titles(user)


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
            assert await choose(user, *answer) == ["Keep it", "Replace it"]
            await user.settled()
            assert path.read_bytes() == content
        await user.press("w")
        prompt.value = str(tmp_path / "no such folder" / "x")
        await user.press("enter")
        assert any("No such file" in notice.message for notice in user.pilot.app._notifications)
    assert [one.name for one in tmp_path.iterdir()] == ["value.json"]  # noqa: ASYNC240 - a test may wait for it


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 20), (80, 24)], ids=str)
async def test_every_key_does_no_harm_in_every_kind_of_value(size: tuple[int, int]) -> None:
    async with browsing(ValueSession(), size=size) as user:
        for key in (HASH, b"jobs", b"ranking", b"events", b"plain", b"bits", b"gone", b"huge", b"secret", b""):
            await opened(user, key)
            await user.press("s", "S", "d", "space", "left", "right", "pagedown", "end", "pageup", "home", "enter")
            await user.press("slash", "x", "enter", "o", "1", "enter", "n", "b")
            while not user.screen.tree_pane.key_tree.has_focus:
                await user.press("escape")


async def test_without_a_terminal_to_give_away_the_pager_says_so() -> None:
    async with browsing(notifications=True) as user:
        await opened(user, b"plain")
        await user.pilot.press("P")
        entries = await choose(user, "enter")
        await user.settled()
        assert [entry.rpartition(", ")[2] for entry in entries] == ["made safe", "raw bytes"]
        assert any("can't be given" in notice.message for notice in user.pilot.app._notifications)


def output(*pieces: bytes | Unknown) -> Output:
    async def each() -> AsyncIterator[bytes | Unknown]:
        for piece in pieces:
            yield piece

    return Output(SafeText("it"), ".bin", each)


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
    span = Page(5, seen=0, span=Span(SafeText("score 1 to 2"), 9, 5))
    assert position_text(replace(base, page=span, total=50)) == "1–2 of 5 · score 1 to 2"
    found = replace(base, page=Page(find=Find(b"x")), total=50, looked_at=2_000)
    assert position_text(found) == "2 found · 50 of 50 looked at"
    assert position_text(replace(found, total=Unknown(Reason.DENIED)), is_short=True) == "2 found in 2,000"
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
    assert sorted_rows(rows, RowOrder(2)) == [
        (rows[2], b"1-0"),
        (rows[0], b"2-0"),
        (rows[1], b"2-0"),
    ]


def test_what_is_found_later_is_added_with_the_columns_of_both() -> None:
    base = Preview(b"k", b"hash", PreviewKind.HASH, columns=FIELDS, rows=((b"a", b"1"),), looked_at=10)
    wide = replace(
        base, columns=(*FIELDS, PreviewColumn("TTL", Meaning.DURATION_MS)), rows=((b"b", b"2", 5),), looked_at=7
    )
    both = with_more(base, wide)
    assert both.rows == ((b"a", b"1", None), (b"b", b"2", 5))
    assert both.looked_at == 17


def test_a_row_is_what_its_columns_say() -> None:
    item = Item(ItemKind.ELEMENT, b"v", FIELDS, (b"f", b"v"))
    assert item.name == b"f"
    assert item.cell(Meaning.SCORE) is None
