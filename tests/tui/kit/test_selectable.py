"""Texts that reach no clipboard, shown to be selected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.drivers.headless_driver import HeadlessDriver
from textual.drivers.linux_driver import LinuxDriver

from rtui.keyspace.text.display import HOSTILE, SafeText
from rtui.tui.kit.clipboard import MOST_BYTES, Selectable, SelectScreen, selectable_lines
from rtui.tui.kit.styled_text import line_width
from rtui.tui.kit.terminal import report_mouse
from tests.tui.browsing import browsing

WIDTH = 40
TITLE = SafeText("name")


def shown(data: bytes, width: int = WIDTH) -> tuple[str, list[str]]:
    """The title, joined, and the lines of a text."""
    lines = ["".join(span.text for span in line) for line in selectable_lines([Selectable(TITLE, data)], (), width)]
    after = lines[lines.index("") + 1 :]
    count = next((at for at, line in enumerate(after) if not line.startswith(" ")), len(after))
    return " ".join(line.strip() for line in after[:count]), after[count:]


PRINTABLE = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1, max_size=300)


@given(text=PRINTABLE)
def test_a_printable_text_is_there_as_it_is(text: str) -> None:
    title, lines = shown(text.encode())
    assert "".join(lines) == text
    assert all(len(line) <= WIDTH for line in lines)
    assert ("join the lines" in title) is (len(text) > WIDTH)
    assert "escapes" not in title


@given(data=st.binary(max_size=300))
def test_nothing_hostile_is_shown_and_what_stands_for_it_is_told(data: bytes) -> None:
    lines = selectable_lines([Selectable(TITLE, data)], (), WIDTH)
    assert not any(HOSTILE.search(span.text) for line in lines for span in line)
    assert all(line_width(line) <= WIDTH for line in lines)
    title, _ = shown(data)
    is_shown = all(byte == 10 or 32 <= byte < 127 for byte in data)
    assert is_shown or "escapes" in title or not data.isascii()


def test_lines_of_a_text_stay_lines() -> None:
    title, lines = shown(b'{\n  "a": 1\n}', 60)
    assert (title, lines) == ("name · 12 bytes", ["{", '  "a": 1', "}"])


def test_bytes_and_controls_are_told_to_be_escapes() -> None:
    title, lines = shown(b"a\x1b[31m\xff", 200)
    assert title.startswith("name · 7 bytes · escapes stand for what can't be shown")
    assert lines == ["a␛[31m\\xff"]


def test_a_long_text_is_said_to_be_cut() -> None:
    title, lines = shown(b"x" * 1_000_000)
    assert "1,000,000 bytes · the first 16,384 bytes" in title
    assert len("".join(lines)) == MOST_BYTES


async def test_a_text_that_reaches_no_clipboard_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")
    async with browsing() as user:
        await user.go(b"events")
        await user.pilot.press("y")
        await user.until(lambda: isinstance(user.pilot.app.screen, SelectScreen))
        screen = user.pilot.app.screen
        assert isinstance(screen, SelectScreen)
        await user.until(lambda: bool(screen.body.lines))
        said = "\n".join("".join(span.text for span in line) for line in screen.body.lines)
        assert "The Linux console has no clipboard." in said
        assert said.endswith("\nevents")
        await user.pilot.press("escape")
        await user.until(lambda: user.pilot.app.screen is user.screen)


async def test_all_copies_can_be_shown_and_the_mouse_is_the_terminals_then(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    async with browsing() as user:
        await user.go(b"events")
        monkeypatch.setattr(HeadlessDriver, "write", lambda _self, data: written.append(data))
        await user.pilot.press("Y", "end", "enter")
        await user.until(lambda: isinstance(user.pilot.app.screen, SelectScreen))
        screen = user.pilot.app.screen
        assert isinstance(screen, SelectScreen)
        await user.until(lambda: len(screen.body.lines) > 10)
        assert mouse_modes(written) == "l"
        await user.pilot.press("escape")
        await user.until(lambda: user.pilot.app.screen is user.screen)
        assert mouse_modes(written) == "lh"


def mouse_modes(written: list[str]) -> str:
    return "".join("h" if "\x1b[?1003h" in one else "l" for one in written if "\x1b[?1003" in one)


@pytest.mark.parametrize("is_wanted", [True, False], ids=["on", "off"])
def test_the_mouse_is_left_and_taken_back_as_textual_does(is_wanted: bool) -> None:
    class Terminal(LinuxDriver):
        def __init__(self) -> None:
            self.written: list[str] = []
            self._mouse = True

        def write(self, data: str) -> None:
            self.written.append(data)

        def flush(self) -> None:
            """Nothing is held back."""

    textuals, ours = Terminal(), Terminal()
    (textuals._enable_mouse_support if is_wanted else textuals._disable_mouse_support)()
    report_mouse(ours, is_wanted=is_wanted)
    assert "".join(ours.written) == "".join(textuals.written)
