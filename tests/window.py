"""A real process in a terminal window: what it writes is kept, and keys can be typed."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers import CHECKOUT

COLUMNS, LINES = 120, 36
"""The size of the window."""

CHUNK_BYTES = 1 << 16
"""How much is read at once."""

SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
"""What a terminal obeys instead of showing it."""

QUESTIONS = {b"\x1b[?2026$p": b"\x1b[?2026;2$y"}
"""What programs ask of a terminal, and the answers of one that paints whole frames at once."""

FOREIGN = ("RTUI", "REDISCLI", "TEXTUAL", "XDG_", "PYTHON", "NO_COLOR")
"""Settings of whoever measures begin so; they don't count."""

STOP_S = 5.0
"""How long a process may take to leave."""


class SilentError(RuntimeError):
    """The program did not show what was waited for, or has ended; the text is what it showed last."""


@dataclass(slots=True)
class Window:
    """A program in a window of `COLUMNS` × `LINES`; use `window` to make one."""

    process: subprocess.Popen[bytes]
    master: int
    home: Path
    """The home of the program, with everything that it saves."""
    shown: bytearray = field(default_factory=bytearray)
    """All text, without the sequences."""
    obeyed: bytearray = field(default_factory=bytearray)
    """The sequences."""
    _rest: bytes = b""

    def read(self, timeout_s: float) -> bool:
        """Take up what is written within this time; whether there was anything."""
        ready, _, _ = select.select([self.master], [], [], max(0.0, timeout_s))
        if not ready:
            return False
        try:
            data = os.read(self.master, CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:
            raise SilentError(f"the program has ended: {bytes(self.shown[-2000:])!r}")
        self._take(data)
        return True

    def wait_for(self, text: bytes, timeout_s: float = 60.0, *, after: int = 0) -> None:
        """Wait until this text was there.

        Only what changes on a screen is written, so that words beside each other may come apart: wait for one word.
        Text that was shown before a position in `shown` doesn't count.
        """
        until = time.perf_counter() + timeout_s
        while self.shown.find(text, after) < 0:
            if not self.read(until - time.perf_counter()):
                raise SilentError(f"no {text!r} within {timeout_s} s: {bytes(self.shown[-2000:])!r}")

    def wait_quiet(self, quiet_s: float) -> None:
        """Wait until nothing was written for so long."""
        while self.read(quiet_s):
            pass

    def type(self, keys: bytes) -> None:
        """Send what a terminal sends for these keys."""
        os.write(self.master, keys)

    def close(self) -> None:
        """Close the window: the program's terminal is gone."""
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, self.master)
        os.close(nothing)

    def _take(self, data: bytes) -> None:
        """Answer questions and keep the text."""
        data = self._rest + data
        cut = data.rfind(b"\x1b")
        whole = cut < 0 or SEQUENCE.match(data, cut)
        data, self._rest = (data, b"") if whole else (data[:cut], data[cut:])
        for question, answer in QUESTIONS.items():
            if question in data:
                self.type(answer)
        self.obeyed += b"".join(SEQUENCE.findall(data))
        self.shown += SEQUENCE.sub(b"", data)


def not_the_first_start(state_home: Path) -> None:
    """Have rtui not say what it says when it is started for the first time."""
    (state_home / "rtui").mkdir(parents=True, exist_ok=True)
    (state_home / "rtui/started").touch()


@contextmanager
def window(arguments: Sequence[str]) -> Iterator[Window]:
    """Run Python with these arguments in a window of its own, with nothing saved from earlier runs."""
    home = tempfile.mkdtemp(prefix="rtui-home-")
    not_the_first_start(Path(home, ".local/state"))
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (LINES, COLUMNS))
    try:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=CHECKOUT,
            env=environment(home),
            start_new_session=True,
        )
        os.close(slave)
        try:
            yield Window(process, master, Path(home))
        finally:
            end(process, master)
    finally:
        os.close(master)
        shutil.rmtree(home, ignore_errors=True)


def environment(home: str) -> dict[str, str]:
    """A plain modern terminal, a home without settings, and compiled modules, as an installed package has them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    folders = {f"XDG_{kind}_HOME": f"{home}/{kind}" for kind in ("CONFIG", "STATE", "CACHE", "DATA")}
    return {**kept, **folders, "HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}


def end(process: subprocess.Popen[bytes], master: int) -> None:
    """Have the program leave, by Ctrl-Q and then by force."""
    until = time.perf_counter() + STOP_S
    with contextlib.suppress(OSError):
        os.write(master, b"\x11")
    while process.poll() is None and time.perf_counter() < until:
        # What it writes on leaving has to go somewhere.
        with contextlib.suppress(OSError):
            if select.select([master], [], [], 0.02)[0]:
                os.read(master, CHUNK_BYTES)
    process.kill()
    process.wait()
