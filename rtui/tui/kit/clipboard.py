"""Copying: at once, or what is chosen from a list; texts that reach no clipboard are shown, to be selected.

The clipboard is where the person is, and rtui may run at the other end of SSH. The ways to it, in this order:

1. tmux, inside of it. `load-buffer -w` keeps the text as a paste buffer, whoever is attached from wherever, and sends
   it on to that person's terminal.
2. A program of the desktop, if its display is the person's: not over SSH, unless X is forwarded.
3. OSC 52, an escape sequence that the terminal puts onto its clipboard. Nothing says whether it has. GNU screen drops
   it, so there it goes in device control strings, which screen hands to the terminal as they are.

A program gets the bytes on its standard input, where no list of processes shows them, and `TIMEOUT_S` seconds; one that
fails, hangs or is missing costs no more than that. A text is called copied only where a program has confirmed it. Else
`SelectScreen` shows it: each text begins in the first column of a line of its own, without a frame, so that nothing
else is selected with it, and the terminal gets its mouse back while the screen is shown.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final, NamedTuple

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.worker import Worker

from rtui.analysis.facts import KeyFacts
from rtui.analysis.humanize import counted
from rtui.keyspace.text.display import SafeText, quoted
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.user.copying import copied_commands, key_as_text
from rtui.server.wire.target import Target
from rtui.tui.kit.choice import ChoiceScreen
from rtui.tui.kit.command_screen import FocusScreen, is_reachable
from rtui.tui.kit.layout import TERMINAL, display_text, prose
from rtui.tui.kit.line_view import ScrollingPanel
from rtui.tui.kit.styled_text import ROLE_CLASSES, Line, Role, Span, cut_middle, literal, wrap
from rtui.tui.kit.terminal import report_mouse, write_to

TIMEOUT_S: Final = 2.0
"""Seconds that a program may take."""

OSC52_BYTES: Final = 74_994
"""The longest text for OSC 52: many terminals drop sequences of more than 100,000 characters, base64 included."""

SCREEN_STRING: Final = 500
"""Characters of a device control string at most: GNU screen drops strings of more than 768."""

NOTHING_SAID: Final = literal("")


class Program(NamedTuple):
    """A program that puts its standard input onto a clipboard."""

    arguments: tuple[str, ...]
    title: SafeText
    """The notice once it has ended with exit code 0."""
    hint: SafeText = NOTHING_SAID
    settings: tuple[tuple[str, str], ...] = ()
    """Environment variables that it needs beside ours."""

    @property
    def name(self) -> SafeText:
        return SafeText(self.arguments[0])


class Delivery(NamedTuple):
    """The outcome of copying a text."""

    title: SafeText
    """Where it went, in a few words; empty where nothing took it."""
    hint: SafeText
    failures: tuple[SafeText, ...]
    """Why each way that comes before it did not do, a sentence each."""

    @property
    def is_taken(self) -> bool:
        return bool(self.title)


_BUFFER_HINT: Final = literal("Paste: prefix ]")

TMUX: Final = (
    Program(("tmux", "load-buffer", "-w", "-"), literal("Copied (tmux buffer and clipboard)"), _BUFFER_HINT),
    Program(("tmux", "load-buffer", "-"), literal("Copied (tmux buffer)"), _BUFFER_HINT),
)
"""Before version 3.2 tmux has no `-w`."""

WAYLAND: Final = (Program(("wl-copy", "--type", "text/plain;charset=utf-8"), literal("Copied with wl-copy")),)
X11: Final = (
    Program(("xclip", "-selection", "clipboard", "-in"), literal("Copied with xclip")),
    Program(("xsel", "--clipboard", "--input"), literal("Copied with xsel")),
)
MACOS: Final = (Program(("pbcopy",), literal("Copied with pbcopy"), settings=(("LC_CTYPE", "UTF-8"),)),)
"""pbcopy reads its input in the character set of the locale."""

NO_OSC52: Final = {"linux": literal("The Linux console has no clipboard."),
                   "dumb": literal("This terminal has no clipboard.")}  # fmt: skip
"""Hints for terminals without OSC 52, by TERM."""


def programs(environment: Mapping[str, str]) -> list[Program]:
    """Return the programs that may reach the person's clipboard, installed or not, the surest first."""
    found: list[Program] = []
    if environment.get("TMUX"):
        found += TMUX
    is_remote = any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"))
    display = environment.get("DISPLAY", "")
    is_forwarded = bool(display) and not display.startswith((":", "unix:", "/"))
    if environment.get("WAYLAND_DISPLAY") and not is_remote:
        found += WAYLAND
    if display and (is_forwarded or not is_remote):
        found += X11
    if not is_remote:
        found += MACOS
    return found


def osc52(data: bytes) -> str:
    """Return the escape sequence that asks the terminal to put bytes onto its clipboard."""
    return f"\x1b]52;c;{b64encode(data).decode()}\a"


def through_screen(sequence: str) -> str:
    """Return a sequence in device control strings, out of which GNU screen takes it for its terminal."""
    parts = (sequence[at : at + SCREEN_STRING] for at in range(0, len(sequence), SCREEN_STRING))
    return "".join(f"\x1bP{part}\x1b\\" for part in parts)


def unfit_for_osc52(data: bytes, environment: Mapping[str, str]) -> SafeText:
    """Return why OSC 52 would not bring a text to the clipboard; empty if it may."""
    if environment.get("TMUX"):
        return literal("tmux blocks access to the terminal's clipboard.")
    if environment.get("TERM_PROGRAM") == "Apple_Terminal":
        return literal("Apple's Terminal does not let programs set the clipboard.")
    if (known := NO_OSC52.get(environment.get("TERM", ""))) is not None:
        return known
    if len(data) > OSC52_BYTES:
        return SafeText(f"{counted(len(data), 'byte')} are too long for most terminals: the limit is {OSC52_BYTES:,}.")
    return NOTHING_SAID


def terminal_hint(environment: Mapping[str, str]) -> SafeText:
    is_within = environment.get("TERM", "").startswith(("tmux", "screen")) and not environment.get("STY")
    if is_within:
        return literal("The terminal does not confirm. An outer tmux needs set -s set-clipboard on.")
    return literal("The terminal does not confirm. If pasting fails, Y shows the text to select.")


async def deliver(data: bytes, environment: Mapping[str, str], write: Callable[[str], None]) -> Delivery:
    """Hand bytes over by the first way that takes them; `write` sends an escape sequence to the terminal."""
    failures: list[SafeText] = []
    for program in programs(environment):
        if shutil.which(program.name, path=environment.get("PATH")) is None:
            if program is TMUX[0]:
                failures.append(literal("tmux is not on the PATH."))
            continue
        failure = await hand_over(program, data, environment)
        if not failure:
            # The older way to call a program says what the newer one could not do.
            others = (one for one in failures if not one.startswith(f"{program.name} "))
            return Delivery(program.title, program.hint, tuple(others))
        if failure not in failures:
            failures.append(failure)
    if unfit := unfit_for_osc52(data, environment):
        return Delivery(NOTHING_SAID, NOTHING_SAID, (*failures, unfit))
    sequence = osc52(data)
    if environment.get("STY"):
        write(through_screen(sequence))
        return Delivery(literal("Sent through screen to the terminal"), terminal_hint(environment), tuple(failures))
    write(sequence)
    return Delivery(literal("Sent to the terminal"), terminal_hint(environment), tuple(failures))


async def hand_over(program: Program, data: bytes, environment: Mapping[str, str]) -> SafeText:
    """Give bytes to a program and wait until it has ended; return why it did not take them, empty if it did.

    Its output is dropped: programs that serve a clipboard go on in the background and would keep a pipe open.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *program.arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env={**environment, **dict(program.settings)},
            start_new_session=True,
        )
    except OSError:
        return SafeText(f"{program.name} could not be started.")
    try:
        await asyncio.wait_for(process.communicate(data), TIMEOUT_S)
    except TimeoutError:
        _kill(process)
        await process.wait()
        return SafeText(f"{program.name} did not answer within {TIMEOUT_S:g} s.")
    except asyncio.CancelledError:
        _kill(process)
        raise
    if process.returncode:
        return SafeText(f"{program.name} failed (exit code {process.returncode}).")
    return NOTHING_SAID


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


MOST_BYTES: Final = 16_384
"""The most bytes of a text that are shown: a few screens, since nobody selects more by hand."""

LONGEST_TOKEN: Final = 10
"""The most characters that one character is shown as: `\\U0001f600`."""


class Selectable(NamedTuple):
    """A text to select."""

    title: SafeText
    data: bytes


class SelectScreen(ModalScreen[None], FocusScreen[None]):
    """Shows texts as they are, each below its title; Escape closes it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*ROLE_CLASSES}
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Close", show=False)]

    def __init__(self, texts: Sequence[Selectable], reasons: Sequence[SafeText] = ()) -> None:
        """`reasons` are sentences on why the texts could not be copied."""
        super().__init__()
        self.body = ScrollingPanel(id="selectable-body")
        self._texts, self._reasons = tuple(texts), tuple(reasons)

    @property
    def focus_home(self) -> Widget:
        return self.body

    def compose(self) -> ComposeResult:
        yield self.body

    def on_mount(self) -> None:
        self.body.set_content(lambda width: selectable_lines(self._texts, self._reasons, width))
        self.set_focus(self.body)
        report_mouse(self.app._driver, is_wanted=False)

    def dismiss(self, result: None = None) -> AwaitComplete:
        if is_reachable(self):
            report_mouse(self.app._driver, is_wanted=True)
        return super().dismiss(result)


def selectable_lines(texts: Sequence[Selectable], reasons: Sequence[SafeText], width: int) -> list[Line]:
    """Return the lines of the screen: why it is shown, how to select, and the texts from the first column on."""
    lines: list[Line] = []
    for reason in reasons:
        lines += prose(reason, width, Role.WARN)
    lines += prose(literal("Select with the mouse and copy with your terminal; esc closes."), width, Role.TEXT)
    for text in texts:
        shown, notes = _shown(text.data, width)
        title = SafeText(" · ".join([text.title, counted(len(text.data), "byte"), *notes]))
        lines += [(), *prose(title, width, Role.MUTED), *((Span(line),) for line in shown)]
    return lines


def _shown(data: bytes, width: int) -> tuple[list[SafeText], list[SafeText]]:
    """Return the lines of a text, broken at the width, and notes on how they differ from it."""
    text = data[:MOST_BYTES].decode("utf-8", "surrogateescape")
    notes = [SafeText(f"the first {MOST_BYTES:,} bytes")] if len(data) > MOST_BYTES else []
    lines: list[SafeText] = []
    is_exact, is_broken = True, False
    for line in text.split("\n"):
        safe = TERMINAL.text(line, limit=LONGEST_TOKEN * (len(line) + 1))
        is_exact = is_exact and safe == line
        rows = wrap(safe, width, len(safe) + 1)
        is_broken = is_broken or len(rows) > 1
        lines += rows
    if is_broken:
        notes.append(literal("wrapped at the terminal width: join the lines"))
    if not is_exact:
        notes.append(literal("contains escapes: copy as escaped bytes instead"))
    return lines, notes


SHOWN_CELLS: Final = 60

NOTICE_S: Final = 3
FAILURE_NOTICE_S: Final = 8
"""How long is shown where a text went, in seconds, and how long if not every way was as it should be."""


class Copy(NamedTuple):
    """An entry of the menu and the text that it copies."""

    title: SafeText
    text: str
    """Printable, but not safe to show: it may resemble something else. Only for the clipboard."""
    note: SafeText = NOTHING_SAID
    """A remark for the notice after copying, such as that the text is a part."""
    start: Callable[[], object] | None = None
    """Starts reading the data to copy if it is not loaded yet; `text` is empty then."""


def copies(target: Target, name: bytes, facts: KeyFacts | None) -> list[Copy]:
    """Return the entries for a key, or for the prefix of a namespace when there are no facts."""
    entries = [Copy(literal("name as text"), key_as_text(name)), Copy(literal("name as escaped bytes"), quoted(name))]
    if facts is None:
        return [*entries, Copy(literal("glob for everything below"), key_as_text(prefix_pattern(name)))]
    for command in copied_commands(target, facts):
        warning = " (changes data)" if command.writes else ""
        entries.append(Copy(SafeText(f"redis-cli: {command.title}{warning}"), command.line))
    return entries


def copy_text(node: DOMNode, text: str | bytes, note: SafeText = NOTHING_SAID) -> Worker[None]:
    """Copy a text or bytes as they are by the first way that takes them; the notice names it and adds `note`.

    If no way takes them, a screen shows the text. The ways are tried in a worker of `node`, which is returned.
    """
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    node.app._clipboard = data.decode("utf-8", "surrogateescape")
    work = partial(_copy, node, data, note)
    return node.run_worker(work, group="copy", exclusive=True, exit_on_error=False, description="copy")


async def _copy(node: DOMNode, data: bytes, note: SafeText) -> None:
    delivery = await deliver(data, os.environ, partial(write_to, node.app._driver))
    if not delivery.is_taken:
        title = SafeText(f"not copied yet{f': {note}' if note else ''}")
        node.app.push_screen(SelectScreen([Selectable(title, data)], delivery.failures))
        return
    message = notice(data, delivery, note)
    timeout = FAILURE_NOTICE_S if delivery.failures else NOTICE_S
    node.app.notify(message, title=delivery.title, markup=False, timeout=timeout)


def notice(data: bytes, delivery: Delivery, note: SafeText = NOTHING_SAID) -> SafeText:
    """Return the copied text, cut, with the remarks on it and on the way that it took."""
    shown = cut_middle(display_text(data.decode("utf-8", "surrogateescape")), SHOWN_CELLS)
    return SafeText("\n".join(line for line in (shown, note, delivery.hint, *delivery.failures) if line))


def choose_copy(node: DOMNode, entries: Sequence[Copy]) -> None:
    """Ask which entry to copy, or show all to be selected."""
    titles = [*(entry.title for entry in entries), literal("show as text, to select with the mouse")]

    def chosen(index: int | None) -> None:
        if index is not None and index < len(entries):
            entry = entries[index]
            if entry.start is None:
                copy_text(node, entry.text, entry.note)
            else:
                entry.start()
        elif index is not None:
            there = [entry for entry in entries if entry.start is None]
            shown = [Selectable(entry.title, entry.text.encode("utf-8", "surrogateescape")) for entry in there]
            node.app.push_screen(SelectScreen(shown))

    node.app.push_screen(ChoiceScreen(literal("Copy"), titles), chosen)
