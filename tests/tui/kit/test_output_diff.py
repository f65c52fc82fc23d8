from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rtui.tui.kit.output_diff import OutputDiff, parse

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
plain = st.text(alphabet="ab ▸█≈é", min_size=1, max_size=8)
wide = st.text(alphabet="a漢e\u0301 ", min_size=1, max_size=4)
runs = st.tuples(
    st.integers(1, HEIGHT), st.integers(1, WIDTH), st.lists(st.tuples(styles, plain | wide), min_size=1, max_size=4)
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
    first = diff.rewrite(data)
    assert len(first) <= len(data)
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
    diff = OutputDiff()
    written = diff.rewrite(f"\x1b[2;3H\x1b[31m{text}\x1b[0m\x1b[32m│end\x1b[0m")
    assert f"\x1b[2;{3 + cell_len(text)}H" in written
    assert written.index(text) < written.index("\x1b[2;", written.index(text)) < written.index("│end")
