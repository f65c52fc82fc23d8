"""The ways to a clipboard, and texts that reach none, shown to be selected."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.drivers.headless_driver import HeadlessDriver
from textual.drivers.linux_driver import LinuxDriver

from rtui.keyspace.text.display import HOSTILE, SafeText
from rtui.tui.kit import clipboard
from rtui.tui.kit.clipboard import (
    MOST_BYTES,
    OSC52_BYTES,
    Delivery,
    Selectable,
    SelectScreen,
    deliver,
    osc52,
    selectable_lines,
    through_screen,
)
from rtui.tui.kit.styled_text import line_width
from rtui.tui.kit.terminal import report_mouse
from tests.conftest import known
from tests.tui.browsing import browsing

DATA = b"shop:user:42\x00\xff\n caf\xc3\xa9 "
REAL_PATH = os.environ.get("PATH", os.defpath)


class Desk:
    """Programs that a test makes, found before nothing else, and what the terminal is sent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent: list[str] = []

    def program(self, name: str, script: str = 'cat > "$0.got"') -> Path:
        """Make a program; returns where it keeps what it was given."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\nPATH={REAL_PATH}\n{script}\n")
        path.chmod(0o755)
        return self.folder / f"{name}.got"

    async def copy(self, data: bytes = DATA, /, **environment: str) -> Delivery:
        return await deliver(data, {"PATH": str(self.folder), "TERM": "xterm"} | environment, self.sent.append)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[str]:
    """A tmux of its own; the value is what TMUX is within it."""
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux")
    socket = tmp_path / "tmux"
    start = ["tmux", "-S", str(socket), "-f", os.devnull, "new-session", "-d", "cat"]
    subprocess.run(start, check=True, env={"PATH": REAL_PATH, "HOME": str(tmp_path), "TERM": "xterm"})
    run_in(str(socket), "set", "-s", "exit-empty", "off")
    yield f"{socket},1,0"
    run_in(str(socket), "kill-server")


def run_in(tmux: str, *arguments: str) -> bytes:
    command = ["tmux", "-S", tmux.partition(",")[0], *arguments]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout


def buffer_of(tmux: str) -> bytes:
    return run_in(tmux, "save-buffer", "-")


def sent_by_osc52(sequence: str) -> bytes:
    return b64decode(known(re.fullmatch(r"\x1b]52;c;([^\a]*)\a", sequence))[1], validate=True)


@pytest.mark.parametrize("data", [DATA, b"x" * 3_000_000, b"-w"], ids=["binary", "large", "like-an-option"])
async def test_tmux_keeps_every_byte(desk: Desk, tmux: str, data: bytes) -> None:
    done = await desk.copy(data, TMUX=tmux, PATH=REAL_PATH, SSH_CONNECTION="1 2 3 4")
    assert done.title == "Copied (tmux buffer and clipboard)"
    assert not done.failures
    assert buffer_of(tmux) == data
    assert not desk.sent


async def test_an_old_tmux_is_asked_as_it_understands(desk: Desk) -> None:
    got = desk.program("tmux", '[ "$2" = -w ] && exit 1\ncat > "$0.got"')
    done = await desk.copy(TMUX="/x,1,0")
    assert done == Delivery(*clipboard.TMUX[1][1:3], ())
    assert got.read_bytes() == DATA


async def test_a_tmux_that_is_gone_leaves_the_text_to_be_shown(desk: Desk, tmp_path: Path) -> None:
    done = await desk.copy(TMUX=f"{tmp_path / 'none'},1,0", PATH=REAL_PATH)
    assert not done.is_taken
    assert done.failures[0] == "tmux failed (exit code 1)."
    assert not desk.sent


async def test_without_tmux_on_the_path_a_program_of_the_desktop_is_next(desk: Desk) -> None:
    got = desk.program("xsel")
    done = await desk.copy(TMUX="/x,1,0", DISPLAY=":0")
    assert (done.title, done.failures) == ("Copied with xsel", ("tmux is not on the PATH.",))
    assert got.read_bytes() == DATA


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("wl-copy", {"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}),
        ("xclip", {"DISPLAY": ":0"}),
        ("xsel", {"DISPLAY": "unix:0"}),
        ("xclip", {"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "1 2 3 4"}),
        ("pbcopy", {}),
    ],
    ids=["wayland", "x11", "xsel", "forwarded", "macos"],
)
async def test_a_program_of_the_desktop_gets_the_bytes(desk: Desk, name: str, environment: dict[str, str]) -> None:
    got = desk.program(name)
    done = await desk.copy(**environment)
    assert done == Delivery(f"Copied with {name}", clipboard.NOTHING_SAID, ())  # type: ignore[arg-type]
    assert got.read_bytes() == DATA
    assert not desk.sent


@pytest.mark.parametrize("sign", ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"])
async def test_over_ssh_no_program_puts_it_onto_the_servers_clipboard(desk: Desk, sign: str) -> None:
    kept = [desk.program(name) for name in ("wl-copy", "xclip", "xsel", "pbcopy")]
    done = await desk.copy(WAYLAND_DISPLAY="wayland-0", DISPLAY=":0", **{sign: "1 2 3 4"})
    assert done.title == "Sent to the terminal"
    assert not any(path.exists() for path in kept)
    assert [sent_by_osc52(one) for one in desk.sent] == [DATA]


async def test_a_program_without_a_display_is_not_asked(desk: Desk) -> None:
    kept = [desk.program(name) for name in ("wl-copy", "xclip", "xsel")]
    assert (await desk.copy()).title == "Sent to the terminal"
    assert not any(path.exists() for path in kept)


async def test_a_program_that_fails_is_named_and_the_next_one_is_asked(desk: Desk) -> None:
    desk.program("xclip", "exit 3")
    got = desk.program("xsel")
    done = await desk.copy(DISPLAY=":0")
    assert (done.title, done.failures) == ("Copied with xsel", ("xclip failed (exit code 3).",))
    assert got.read_bytes() == DATA


async def test_a_file_that_is_no_program_is_named(desk: Desk) -> None:
    path = desk.folder / "xclip"
    path.write_bytes(b"\x7fELF")
    path.chmod(0o755)
    done = await desk.copy(DISPLAY=":0")
    assert (done.title, done.failures) == ("Sent to the terminal", ("xclip could not be started.",))


@pytest.mark.parametrize("data", [b"short", b"x" * 60_000], ids=["short", "nearly-all-a-pipe-holds"])
async def test_a_program_that_hangs_is_ended_and_the_next_way_taken(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def recorded(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", recorded)
    monkeypatch.setattr(clipboard, "TIMEOUT_S", 0.1)
    desk.program("xclip", "exec sleep 600")
    done = await desk.copy(data, DISPLAY=":0")
    assert (done.title, done.failures) == ("Sent to the terminal", ("xclip did not answer within 0.1 s.",))
    assert [process.returncode for process in started] == [-signal.SIGKILL]
    assert [sent_by_osc52(one) for one in desk.sent] == [data]


async def test_a_program_that_serves_the_clipboard_in_the_background_is_not_waited_for(desk: Desk) -> None:
    got = desk.program("wl-copy", 'cat > "$0.got"\nsleep 600 &\necho $! > "$0.pid"')
    done = await desk.copy(WAYLAND_DISPLAY="wayland-0")
    background = int((desk.folder / "wl-copy.pid").read_text())
    os.kill(background, 0)
    os.kill(background, signal.SIGKILL)
    assert done.title == "Copied with wl-copy"
    assert got.read_bytes() == DATA


async def test_a_program_that_reads_nothing_is_believed(desk: Desk) -> None:
    desk.program("xclip", "exit 0")
    assert (await desk.copy(b"x" * 1_000_000, DISPLAY=":0")).title == "Copied with xclip"


@given(data=st.binary(max_size=5_000))
def test_screen_passes_on_what_the_terminal_is_to_get(data: bytes) -> None:
    sequence = through_screen(osc52(data))
    parts = re.findall(r"\x1bP((?:(?!\x1b\\).)*)\x1b\\", sequence)
    assert sent_by_osc52("".join(parts)) == data
    assert sequence == "".join(f"\x1bP{part}\x1b\\" for part in parts)
    assert all(len(part) < 768 for part in parts)


async def test_within_screen_the_sequence_is_wrapped(desk: Desk) -> None:
    done = await desk.copy(STY="1.pts", TERM="screen")
    assert done.title == "Sent through screen to the terminal"
    assert desk.sent == [through_screen(osc52(DATA))]


async def test_only_a_program_is_said_to_have_copied(desk: Desk) -> None:
    for environment in ({}, {"STY": "1.pts"}, {"TERM": "tmux-256color"}):
        done = await desk.copy(**environment)
        assert done.is_taken
        assert "opied" not in done.title
        assert "does not confirm" in done.hint


async def test_a_tmux_on_the_way_is_told_of(desk: Desk) -> None:
    done = await desk.copy(TERM="tmux-256color", SSH_CONNECTION="1 2 3 4")
    assert "set-clipboard on" in done.hint
    assert "set-clipboard" not in (await desk.copy()).hint


async def test_the_longest_text_for_the_terminal(desk: Desk) -> None:
    longest = b"x" * OSC52_BYTES
    assert (await desk.copy(longest)).is_taken
    assert len(desk.sent[0]) <= 100_000
    done = await desk.copy(longest + b"x")
    assert not done.is_taken
    assert done.failures == ("74,995 bytes are too long for most terminals: the limit is 74,994.",)
    assert len(desk.sent) == 1


@pytest.mark.parametrize(
    "environment", [{"TERM": "linux"}, {"TERM": "dumb"}, {"TERM_PROGRAM": "Apple_Terminal"}], ids=str
)
async def test_terminals_without_a_clipboard_are_known(desk: Desk, environment: dict[str, str]) -> None:
    done = await desk.copy(**environment)
    assert not done.is_taken
    assert len(done.failures) == 1
    assert not desk.sent


PRINT_AND_STAY = """
import sys, time
from rtui.tui.kit.clipboard import osc52, through_screen
sys.stdout.write(through_screen(osc52(bytes(range(256)) * 250)) + "done")
sys.stdout.flush()
time.sleep(600)
"""


@pytest.mark.slow
def test_a_real_screen_hands_it_to_its_terminal(tmp_path: Path, tmux: str) -> None:
    """The terminal of GNU screen is a tmux that takes texts by OSC 52."""
    if shutil.which("screen") is None:
        pytest.skip("there is no screen")
    run_in(tmux, "set", "-s", "set-clipboard", "on")
    run_in(tmux, "set-hook", "-g", "pane-set-clipboard", "wait-for -S copied")
    environment = {"PATH": REAL_PATH, "SCREENDIR": str(tmp_path)}
    name = ["screen", "-S", "rtui-test"]
    screen = [*name, "-c", os.devnull, sys.executable, "-c", PRINT_AND_STAY]
    run_in(tmux, "respawn-pane", "-k", "-e", f"SCREENDIR={tmp_path}", shlex.join(screen))
    try:
        run_in(tmux, "wait-for", "copied")
        assert buffer_of(tmux) == bytes(range(256)) * 250
    finally:
        subprocess.run([*name, "-X", "quit"], check=True, env=environment)


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
    assert title.startswith("name · 7 bytes · contains escapes: copy as escaped bytes instead")
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
