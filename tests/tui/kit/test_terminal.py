"""The driver, keys that come faster than the keyboard changes hands, and what never reaches a terminal."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import ControlType, Segment
from textual import events
from textual.color import Color
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.keys import _character_to_key
from textual.message import Message

from rtui.keyspace.text.display import _DRAWN_TOGETHER, HOSTILE
from rtui.server.options import BrowseOptions
from rtui.tui.app import RtuiApp
from rtui.tui.browse.screen import BrowseScreen
from rtui.tui.help import HelpScreen
from rtui.tui.kit.bars import FilterInput
from rtui.tui.kit.output_diff import OutputDiff, parse
from rtui.tui.kit.terminal import (
    _LOOKALIKES,
    _TWO_CELLS,
    LONGEST_S,
    AsciiFilter,
    ConsoleFilter,
    KeySerialiser,
    SanitisingFilter,
    plain,
    terminal_driver,
)
from tests.keyspace.text.test_display import SEQUENCES
from tests.server.targets import plant, target_of
from tests.servers import Server
from tests.tui.browsing import browsing, is_settled, until
from tests.tui.fixed_session import FixedSession
from tests.tui.visiting import Visitor, visiting

MOVED = events.MouseMove(None, 1, 1, 1, 0, 0, shift=False, meta=False, ctrl=False)

FRAME = "\x1b[1;1H\x1b[31mabc\x1b[0m\x1b[1;1H"


class FakeTerminal(HeadlessDriver):
    """Keeps what it is told to write and to send."""

    def __init__(self, app: RtuiApp) -> None:
        super().__init__(app)
        self.written: list[str] = []
        self.sent: list[Message] = []

    def write(self, data: str) -> None:
        self.written.append(data)

    def send_message(self, message: Message) -> None:
        self.sent.append(message)


async def test_what_the_terminal_shows_is_not_written_again_until_it_changes_its_size() -> None:
    driver = terminal_driver(FakeTerminal, lambda _message: None)(RtuiApp(BrowseOptions(), FixedSession()))
    assert isinstance(driver, FakeTerminal)
    driver.write(FRAME)
    driver.write(FRAME)
    driver.send_message(events.Resize(Size(80, 24), Size(80, 24)))
    driver.write(FRAME)
    assert ["abc" in data for data in driver.written] == [True, False, True]
    assert len(driver.sent) == 1


def test_the_application_writes_through_it() -> None:
    assert "TerminalDriver" in [one.__name__ for one in RtuiApp(BrowseOptions(), FixedSession()).driver_class.__mro__]


async def test_everything_is_painted_again_when_the_terminal_comes_back_to_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = RtuiApp(BrowseOptions(), FixedSession())
    written: list[str] = []
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen) and is_settled(app.screen))
        assert app._driver is not None
        monkeypatch.setattr(HeadlessDriver, "is_headless", False)
        monkeypatch.setattr(app._driver, "write", written.append)
        app.post_message(events.Resize(Size(80, 24), Size(80, 24)))
        await until(pilot, lambda: "READ-ONLY" in "".join(written) and "Help" in "".join(written))


@pytest.mark.parametrize(
    ("message", "ways"), [(events.Key("down", None), 1), (events.Resize(Size(80, 24), Size(80, 24)), 0), (MOVED, 0)]
)
async def test_the_scan_gives_way_to_a_key_before_the_loop_has_it(message: Message, ways: int) -> None:
    session = FixedSession()
    sent: list[tuple[Message, int]] = []

    class FakeTerminal(HeadlessDriver):
        def send_message(self, message: Message) -> None:
            sent.append((message, session.input_yields))

    app = RtuiApp(BrowseOptions(), session)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, BrowseScreen) and is_settled(app.screen))
        app.extend_driver(FakeTerminal)(app).send_message(message)
    assert sent == [(message, ways)]


NAMED = {"\r": "enter", "\x1b": "escape", "\t": "tab"}


def at_once(visitor: Visitor, text: str) -> None:
    """Press keys as they come in one packet from a terminal."""
    for character in text:
        name = NAMED[character] if character in NAMED else _character_to_key(character)
        visitor.app.post_message(events.Key(name, character))


async def test_a_filter_in_one_packet_with_the_key_that_opens_it(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"queue:1", b"queue:2", b"other"])
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, "/queue")
        line = visitor.browse.query_one(FilterInput)
        await visitor.until(lambda: line.value == "queue", "the text in the line")
        assert visitor.app.focused is line


async def test_the_key_that_ends_the_line_comes_last(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"queue:1", b"queue:2", b"other"])
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, "/queue:1\r")
        await visitor.until(lambda: visitor.detail.key == b"queue:1", "the key of that name")


@pytest.mark.parametrize("keys", ["\r/", "\t/", "\t\x1b\t/", "\r\x1bl/", "\r/a\x1b/"], ids=repr)
async def test_what_follows_the_key_that_enters_a_value_is_for_the_value(
    valkey: Server, tmp_path: Path, keys: str
) -> None:
    valkey.admin.hset("queue:1", mapping={"a": "1", "b": "2"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("queue:1")
        at_once(visitor, keys + "field")
        prompt = visitor.pane.value.prompt
        await visitor.until(lambda: prompt.value == "field", "the text in the line")
        assert visitor.app.focused is prompt
        assert not visitor.browse.filter_input.is_open


@pytest.mark.parametrize("keys", ["\x1b/", "\t/", "h/", "/a\x1b\x1b/"], ids=repr)
async def test_what_follows_the_key_that_leaves_a_value_is_for_the_tree(
    valkey: Server, tmp_path: Path, keys: str
) -> None:
    valkey.admin.hset("queue:1", mapping={"a": "1", "b": "2"})
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        await visitor.go("queue:1")
        await visitor.press("enter")
        await visitor.until(lambda: visitor.app.focused is visitor.pane.body, "the value")
        at_once(visitor, keys + "queue")
        line = visitor.browse.filter_input
        await visitor.until(lambda: line.value == "queue", "the text in the line")
        assert visitor.app.focused is line
        assert not visitor.pane.value.prompt.is_open


async def test_a_name_in_one_packet_with_the_key_that_asks_for_it(valkey: Server, tmp_path: Path) -> None:
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, ":help\r")
        await visitor.until(lambda: isinstance(visitor.app.screen, HelpScreen), "the help")


async def test_keys_behind_one_that_closes_a_screen_come_in_their_order(valkey: Server, tmp_path: Path) -> None:
    plant(valkey, [b"queue:1", b"queue:2", b"other"])
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
        at_once(visitor, "?\x1bs\r/queue")
        line = visitor.browse.filter_input
        await visitor.until(lambda: line.value == "queue", "the text in the line")
        assert visitor.app.screen is visitor.browse


async def test_keys_wait_for_one_that_takes_long_and_keep_their_order() -> None:
    """The widget is busy for longer than anybody types, as on a machine that has much else to do."""
    now_s, is_over = [0.0], asyncio.Event()
    async with browsing() as user:
        app, tree = user.pilot.app, user.screen.tree_pane.key_tree
        assert isinstance(app, RtuiApp)
        app._keys = KeySerialiser(app, lambda: now_s[0])
        tree.call_later(is_over.wait)
        for character in "/lock":
            app.post_message(events.Key(_character_to_key(character), character))
            await asyncio.sleep(0)
            now_s[0] += LONGEST_S / 6
        is_over.set()
        await user.until(lambda: user.screen.filter_input.value == "lock")
        assert user.has_keyboard(user.screen.filter_input)


async def test_a_key_that_comes_back_when_all_is_taken_down_goes_nowhere(valkey: Server, tmp_path: Path) -> None:
    async with visiting(target_of(valkey), tmp_path) as visitor:
        await visitor.whole()
    assert not visitor.app.screen_stack
    late = events.Key("q", "q")
    late._set_forwarded()
    await visitor.app.on_event(late)


BLACK = Color(0, 0, 0)
CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Cs"}


@given(st.text())
def test_nothing_that_steers_a_terminal_gets_through(text: str) -> None:
    (segment,) = SanitisingFilter().apply([Segment(text)], BLACK)
    assert not HOSTILE.search(_DRAWN_TOGETHER.sub("", segment.text))
    assert not any(ord(ch) < 32 or 0x7F <= ord(ch) < 0xA0 for ch in segment.text)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_deleting_does_not_move_what_stands_behind(text: str) -> None:
    (segment,) = SanitisingFilter().apply([Segment(text)], BLACK)
    assert cell_len(segment.text) == cell_len(text)


def test_every_control_and_direction_is_taken_out() -> None:
    steering = [chr(code) for code in range(0x3000) if unicodedata.category(chr(code)) in CATEGORIES]
    (segment,) = SanitisingFilter().apply([Segment("".join(steering))], BLACK)
    assert segment.text.strip() == ""


@pytest.mark.parametrize("text", SEQUENCES)
def test_what_is_drawn_as_one_gets_through(text: str) -> None:
    (segment,) = SanitisingFilter().apply([Segment(f"a\u200d{text}\u200b\ufe0f")], BLACK)
    assert segment.text == f"a{text}"


def test_controls_of_the_screen_itself_stay() -> None:
    control = Segment("\x1b[2J", None, [(ControlType.CLEAR,)])
    assert SanitisingFilter().apply([control, Segment("a\x1bb")], BLACK) == [control, Segment("ab")]


@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x2FFF, exclude_categories=["Cc", "Cf"])))
def test_plain_terminals_get_ascii_of_the_same_width(text: str) -> None:
    assert plain(text).isascii()
    assert cell_len(plain(text)) == cell_len(text)


def test_marks_keep_their_meaning() -> None:
    segments = AsciiFilter().apply([Segment("▾ shop  ≥ 1,204  ≈ 1.2k  ██▌ · – ≠")], BLACK)
    assert segments[0].text == "v shop  >=1,204  ~ 1.2k  ### - - !"


CONSOLE_GLYPHS = "☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼⌂"
"""What code page 437 has in the places of the control characters."""


def test_the_linux_console_gets_only_what_its_fonts_have() -> None:
    ours = "".join(_LOOKALIKES.values()) + "".join(_TWO_CELLS)
    shown = "".join(segment.text for segment in ConsoleFilter().apply([Segment(ours)], BLACK))
    assert cell_len(shown) == cell_len(ours)
    assert not [ch for ch in shown if ch not in CONSOLE_GLYPHS and not ch.encode("cp437", "ignore")]


def test_names_and_controls_pass_the_console_filter() -> None:
    control = Segment("…", None, [(ControlType.BELL,)])
    assert ConsoleFilter().apply([Segment("käse жук 日本"), control], BLACK) == [Segment("käse жук 日本"), control]


WIDTH, HEIGHT = 12, 4

_TOKEN = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[(\d+)G|\x1b\[([\d;]*)m|(\r?\n)|(.)", re.DOTALL)


class Terminal:
    """As much of a terminal as frames need: cells with styles, moves, SGR."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], tuple[str, frozenset[tuple[str, str]]]] = {}
        self.row = self.column = 1
        self.style: dict[str, str] = {}

    def feed(self, data: str) -> None:
        for row, column, to_column, sgr, newline, character in _TOKEN.findall(data):
            if row:
                self.row, self.column = int(row), int(column)
            elif to_column:
                self.column = int(to_column)
            elif newline:
                self.row, self.column = self.row + 1, 1
            elif character:
                self._print(character)
            else:
                self._sgr(sgr)

    def _print(self, character: str) -> None:
        size = cell_len(character)
        for offset in range(size):
            cell = character if not offset else ""
            self.cells[self.row, self.column + offset] = (cell, frozenset(self.style.items()))
        self.column += size

    def _sgr(self, parameters: str) -> None:
        items = parameters.split(";")
        while items:
            item = items.pop(0)
            if item in ("", "0"):
                self.style = {}
            elif item in ("38", "48"):
                count = 4 if items[0] == "2" else 2
                self.style[item[0]] = ";".join(items[:count])
                del items[:count]
            elif item in ("39", "49"):
                self.style.pop(item[0], None)
            elif len(item) == 2 and item[0] in "34":
                self.style[item[0]] = item
            else:
                self.style[item] = "on"


styles = st.sampled_from(
    [
        "", "1", "7", "31", "1;31", "38;2;1;2;3", "38;2;1;2;3;48;2;4;5;6", "38;5;9;44", "48;2;4;5;6",
        "1;38;2;1;2;3;48;2;4;5;6",
    ]
)  # fmt: skip
plain_text = st.text(alphabet="ab ▸█≈é", min_size=1, max_size=8)
wide = st.text(alphabet="a漢e\u0301 ", min_size=1, max_size=4)
runs = st.tuples(
    st.integers(1, HEIGHT),
    st.integers(1, WIDTH),
    st.lists(st.tuples(styles, plain_text | wide), min_size=1, max_size=4),
)
frames = st.lists(runs, min_size=1, max_size=6)


def frame(parts: list[tuple[int, int, list[tuple[str, str]]]]) -> str:
    """Write a frame as Textual does: a move, then each text between its style and a reset, lines apart by a newline."""
    lines = []
    for row, column, texts in parts:
        spelt = "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for style, text in texts)
        lines.append(f"\x1b[{row};{column}H{spelt}")
    return "\n".join(lines) + "\x1b[1;1H"


@given(st.lists(frames, min_size=1, max_size=6))
def test_the_terminal_shows_the_same(session: list[list[tuple[int, int, list[tuple[str, str]]]]]) -> None:
    diff, plain_terminal, diffed_terminal = OutputDiff(), Terminal(), Terminal()
    for parts in session:
        data = frame(parts)
        plain_terminal.feed(data)
        diffed_terminal.feed(diff.rewrite(data))
        assert _shown(diffed_terminal) == _shown(plain_terminal)
        assert diffed_terminal.style == {}
        assert (diffed_terminal.row, diffed_terminal.column) == (1, 1)


def _shown(terminal: Terminal) -> dict[tuple[int, int], tuple[str, frozenset[tuple[str, str]]]]:
    return terminal.cells


def test_the_same_frame_again_costs_a_move_at_most() -> None:
    diff = OutputDiff()
    data = frame([(1, 1, [("31", "abc"), ("", "de")]), (2, 3, [("48;2;4;5;6", "x y")])])
    assert len(diff.rewrite(data)) <= len(data)
    assert diff.rewrite(data) == "\x1b[1;1H"


def test_one_changed_cell_is_one_cell() -> None:
    diff = OutputDiff()
    diff.rewrite(frame([(1, 1, [("31", "counter 0041")])]))
    assert diff.rewrite(frame([(1, 1, [("31", "counter 0042")])])) == "\x1b[1;12H\x1b[31m2\x1b[m\x1b[1G"


@pytest.mark.parametrize("data", ["\x1b[2J", "\x1b[?1049h", "text without a move", "\x1b[1;1Ha\nb", "\x1b[H"], ids=repr)
def test_anything_else_passes_and_ends_all_knowledge(data: str) -> None:
    diff = OutputDiff()
    known = frame([(1, 1, [("31", "abc")])])
    diff.rewrite(known)
    assert diff.rewrite(data) == data
    assert "abc" in diff.rewrite(known)


@pytest.mark.parametrize("data", ["\x1b[?2026h", "\x1b[?2026l", "\x1b]52;c;aGk=\x07", "\x07"], ids=repr)
def test_what_leaves_the_screen_alone_leaves_the_knowledge_alone(data: str) -> None:
    diff = OutputDiff()
    known = frame([(1, 1, [("31", "abc")])])
    diff.rewrite(known)
    assert diff.rewrite(data) == data
    assert diff.rewrite(known) == "\x1b[1;1H"


def test_after_forgetting_everything_is_sent() -> None:
    diff = OutputDiff()
    known = frame([(1, 1, [("31", "abc")])])
    diff.rewrite(known)
    diff.forget()
    assert "abc" in diff.rewrite(known)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("", ("", "", "")),
        ("1;4", ("1;4", "", "")),
        ("1;38;2;1;2;3;48;5;7", ("1", "38;2;1;2;3", "48;5;7")),
        ("91;103", ("", "91", "103")),
        ("9;30;47", ("9", "30", "47")),
    ],
)
def test_styles_are_taken_apart(parameters: str, expected: tuple[str, str, str]) -> None:
    assert tuple(parse(parameters)) == expected


def test_a_frame_for_a_larger_terminal_is_sent_as_it_is_and_known_as_nothing() -> None:
    diff = OutputDiff()
    diff.resize(10, 2)
    last = "\x1b[2;1Hsecond\x1b[2;1H"
    diff.rewrite(last)
    beyond = ("\x1b[3;1Hthird", "\x1b[1;8Hwide", "\x1b[1;9H漢字")
    for frame in beyond:
        assert diff.rewrite(frame) == frame
        assert "second" in diff.rewrite(last)
        assert "second" not in diff.rewrite(last)
    assert "漢" in diff.rewrite("\x1b[1;7H漢字")
    assert "second" not in diff.rewrite(last)


@pytest.mark.parametrize("text", ["👨\u200d👩\u200d👧 ", "नाम ", "🏳\ufe0f\u200d🌈🇵🇱", "e\u0301"])
def test_what_follows_characters_drawn_as_one_is_placed(text: str) -> None:
    """Whatever their width is in a terminal: here it draws none of them together."""
    written = OutputDiff().rewrite(f"\x1b[2;3H\x1b[31m{text}\x1b[0m\x1b[32m│end\x1b[0m")
    assert f"\x1b[2;{3 + cell_len(text)}H" in written
    assert written.index(text) < written.index("\x1b[2;", written.index(text)) < written.index("│end")
