"""The line in which a query is typed; what is highlighted in the names that it finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.query.hints import complete
from rtui.analysis.query.parsing import parse, read
from rtui.analysis.query.query import Query, Term
from rtui.server.wire.target import Target
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.find import FindScreen
from rtui.tui.found_view import Marker, marked_spans, whole_name
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.query_hints import hint_lines, is_query, styled_parts
from rtui.tui.kit.query_line import NameScreen, QueryLine
from rtui.tui.kit.settings import SettingsError, SettingsFile, expanded, save_query, unknown_names
from rtui.tui.kit.styled_text import Role, cut_middle, line_width
from tests.tui.browsing import browsing, until
from tests.tui.find.test_find_screen import keys_for
from tests.tui.visiting import check_text


@pytest.mark.parametrize(
    "line", ["cart", "user:42", "user:*:cart", "two words", "", "a:b", "tpye:hash", '"open', "price[", "x<"]
)
def test_what_may_be_a_name_is_no_query(line: str) -> None:
    assert not is_query(read(line), line)


@pytest.mark.parametrize("line", ["ttl:none", "cart type:hash", "!cart", "ttl<", "size>1X", "sise>1M", "slot:99999"])
def test_terms_right_or_wrong_are_a_query(line: str) -> None:
    assert is_query(read(line), line)


def said(line: QueryLine) -> str:
    return "\n".join("".join(span.text for span in one) for one in line.hint.lines)


async def test_what_a_term_takes_is_said_while_it_is_typed() -> None:
    async with browsing() as user:
        line = user.screen.filter_input
        await user.pilot.press("slash")
        await until(user.pilot, lambda: "text, a glob, or terms" in said(line))
        await user.pilot.press(*"ttl:")
        await until(user.pilot, lambda: "by remaining TTL" in said(line))
        assert "none" in said(line)
        await user.pilot.press(*"x")
        await until(user.pilot, lambda: "what is left" not in said(line))


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
        await until(user.pilot, lambda: "There is no term “sise”" in said(line) and "tab meant: size" in said(line))
        assert line.is_open
        assert isinstance(user.pilot.app.screen, BrowseScreen)
        assert user.session.searches == []
        parts = list(styled_parts(line.reading, line.value))
        assert (5, 9) in [(start, end) for start, end, _ in parts]
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
            await until(user.pilot, lambda message=message: message in said(line))  # type: ignore[misc]
            assert line.is_open
        assert not user.pilot.app._notifications


@pytest.mark.parametrize(("text", "meant"), [("tyep:hash", "type:hash"), ("TTL=none", "ttl:none")])
async def test_a_near_miss_is_said_while_it_is_typed_and_where_no_name_has_it(text: str, meant: str) -> None:
    async with browsing() as user:
        line = user.screen.filter_input
        await user.pilot.press("slash", *keys_for(text))
        await until(user.pilot, lambda: "searched as part of a name" in said(line) and meant in said(line))
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
        await until(user.pilot, lambda: "in:lock !9" in said(line))
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
