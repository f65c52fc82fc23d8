"""The ways to a clipboard: which of them the environment offers, and trying one after the other.

The clipboard is where the person is, and rtui may run at the other end of SSH. In this order:

1. tmux, inside of it. `load-buffer -w` keeps the text as a paste buffer, whoever is attached from wherever, and sends
   it on to that person's terminal.
2. A program of the desktop, if its display is the person's: not over SSH, unless X is forwarded.
3. OSC 52, an escape sequence that the terminal puts onto its clipboard. Nothing says whether it has. GNU screen drops
   it, so there it goes in device control strings, which screen hands to the terminal as they are.

What none of them takes is left to the caller, to be shown. A program gets the bytes on its standard input, where no
list of processes shows them, and `TIMEOUT_S` seconds; one that fails, hangs or is missing costs no more than that.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from rtui.analysis.humanize import counted
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.styled_text import literal

TIMEOUT_S: Final = 2.0
"""So long a program may take."""

OSC52_BYTES: Final = 74_994
"""The longest text for OSC 52: many terminals drop sequences of more than 100,000 characters, base64 included."""

SCREEN_STRING: Final = 500
"""Characters of a device control string at most: GNU screen drops those of more than 768."""

NOTHING_SAID: Final = literal("")


class Program(NamedTuple):
    """A program that puts its standard input onto a clipboard."""

    arguments: tuple[str, ...]
    title: SafeText
    """What is true once it has ended with exit code 0."""
    hint: SafeText = NOTHING_SAID
    """What the person should know then."""
    settings: tuple[tuple[str, str], ...] = ()
    """What it needs in its environment beside ours."""

    @property
    def name(self) -> SafeText:
        """Its name, which is one of ours."""
        return SafeText(self.arguments[0])


class Delivery(NamedTuple):
    """What has become of a text."""

    title: SafeText
    """Where it went, in a few words; empty where nothing took it."""
    hint: SafeText
    """What else is to be known about that way."""
    failures: tuple[SafeText, ...]
    """Why each way that comes before it did not do, a sentence each."""

    @property
    def is_taken(self) -> bool:
        """Whether the text went anywhere."""
        return bool(self.title)


_BUFFER_HINT: Final = literal("Paste it with the prefix of tmux and ].")

TMUX: Final = (
    Program(("tmux", "load-buffer", "-w", "-"), literal("Copied to tmux, and sent to the terminal"), _BUFFER_HINT),
    Program(("tmux", "load-buffer", "-"), literal("Copied to tmux"), _BUFFER_HINT),
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
"""What is known of terminals by TERM."""


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


def is_installed(program: Program, environment: Mapping[str, str]) -> bool:
    """Whether the program is found."""
    return shutil.which(program.name, path=environment.get("PATH")) is not None


def osc52(data: bytes) -> str:
    """Return the escape sequence that asks the terminal to put bytes onto its clipboard."""
    return f"\x1b]52;c;{b64encode(data).decode()}\a"


def through_screen(sequence: str) -> str:
    """Return a sequence in device control strings, out of which GNU screen takes it for its terminal."""
    parts = (sequence[at : at + SCREEN_STRING] for at in range(0, len(sequence), SCREEN_STRING))
    return "".join(f"\x1bP{part}\x1b\\" for part in parts)


def unfit_for_osc52(data: bytes, environment: Mapping[str, str]) -> SafeText:
    """Return why OSC 52 would not bring a text to the clipboard; empty where it may."""
    if environment.get("TMUX"):
        return literal("Within tmux the terminal itself can't be reached.")
    if environment.get("TERM_PROGRAM") == "Apple_Terminal":
        return literal("Apple's Terminal takes no text from programs.")
    if (known := NO_OSC52.get(environment.get("TERM", ""))) is not None:
        return known
    if len(data) > OSC52_BYTES:
        return SafeText(f"Of {counted(len(data), 'byte')} most terminals take none: {OSC52_BYTES:,} is the limit.")
    return NOTHING_SAID


def terminal_hint(environment: Mapping[str, str]) -> SafeText:
    """Return what a person should know about a text that was sent by OSC 52."""
    is_within = environment.get("TERM", "").startswith(("tmux", "screen")) and not environment.get("STY")
    if is_within:
        return literal("It does not confirm. A tmux on the way needs set -s set-clipboard on.")
    return literal("It does not confirm. If nothing can be pasted, Y shows the text to select.")


async def deliver(data: bytes, environment: Mapping[str, str], write: Callable[[str], None]) -> Delivery:
    """Hand bytes over by the first way that takes them; `write` sends an escape sequence to the terminal."""
    failures: list[SafeText] = []
    for program in programs(environment):
        if not is_installed(program, environment):
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
    """Give bytes to a program and wait until it has ended; returns why it did not take them, empty if it did.

    What it prints is dropped: programs that serve a clipboard go on in the background and would keep a pipe open.
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
    """End a process and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
