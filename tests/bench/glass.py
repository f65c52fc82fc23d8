"""A terminal one can look into: runs a program on a pseudo terminal and keeps what it shows."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

READ_BYTES = 1 << 16
"""How much output is taken at once."""

TOKEN = re.compile(
    r"\x1b\[([0-9;?<>=]*)([ -/]*)([@-~])|\x1b[\]P_^].*?(?:\x07|\x1b\\)|\x1b[()].|\x1b.|[\x00-\x1f]|[^\x00-\x1f\x1b]+"
)
"""A control sequence, a string sequence, a control character or a run of text."""

MOVES = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1)}
"""Sequences that move the cursor: rows and columns."""

UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*|[\]P_^][^\x07\x1b]*(?:\x1b)?|[()])?$")
"""The beginning of a sequence at the end of what has been read."""


class Glass:
    """A program on a terminal of `columns` × `rows`; a context manager that kills it at the end.

    Understands what Textual writes: positions, colours, text. A cell holds a character and its background.
    """

    def __init__(self, command: Sequence[str], *, columns: int = 120, rows: int = 36) -> None:
        self.columns, self.rows = columns, rows
        self.bytes_out = 0
        self.read_at = 0.0
        self.started_at = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ |= {
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                "LINES": str(rows),
                "COLUMNS": str(columns),
            }
            os.execvp(command[0], list(command))  # noqa: S606 -- no shell is wanted
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._cells = [[(" ", "")] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._style = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._fd)
        os.waitpid(self.pid, 0)

    def line(self, row: int) -> str:
        """The text of a row."""
        return "".join(character for character, _ in self._cells[row])

    def text(self) -> str:
        """Everything on screen."""
        return "\n".join(map(self.line, range(self.rows)))

    def style(self, row: int, column: int) -> str:
        """The background of a cell, as the parameters that set it."""
        return self._cells[row][column][1]

    def press(self, keys: bytes) -> float:
        """Type something; returns the moment."""
        now = time.perf_counter()
        os.write(self._fd, keys)
        return now

    def wait(self, condition: Callable[[], bool], timeout_s: float = 30.0) -> float:
        """Read until a condition on what is shown holds; returns the moment when the last needed bytes came.

        Raises TimeoutError, with what is on screen.
        """
        until = time.perf_counter() + timeout_s
        while not condition():
            if not self.read(until - time.perf_counter()):
                raise TimeoutError(self.text())
        return self.read_at

    def settle(self, quiet_s: float = 0.3) -> int:
        """Read until nothing has come for a while; returns how many bytes came."""
        before = self.bytes_out
        while self.read(quiet_s):
            pass
        return self.bytes_out - before

    def read(self, timeout_s: float) -> bool:
        """Read once; False when nothing came in time."""
        ready, _, _ = select.select([self._fd], [], [], max(0.0, timeout_s))
        if not ready:
            return False
        data = os.read(self._fd, READ_BYTES)
        self.read_at = time.perf_counter()
        self.bytes_out += len(data)
        self._show(self._rest + self._decoder.decode(data))
        return True

    def _show(self, text: str) -> None:
        unfinished = UNFINISHED.search(text)
        end = unfinished.start() if unfinished else len(text)
        self._rest = text[end:]
        for token in TOKEN.finditer(text, 0, end):
            final = token[3]
            if final == "H":
                row, _, column = token[1].partition(";")
                self._row, self._column = int(row or 1) - 1, int(column or 1) - 1
            elif final == "m":
                self._colour([int(number or 0) for number in token[1].split(";")])
            elif final in MOVES:
                rows, columns = MOVES[final]
                self._row += rows * int(token[1] or 1)
                self._column += columns * int(token[1] or 1)
            elif final == "G":
                self._column = int(token[1] or 1) - 1
            elif final == "J" and token[1] == "2":
                self._cells = [[(" ", "")] * self.columns for _ in range(self.rows)]
            elif final == "K" and token[1] in ("", "0"):
                self._fill(self.columns - self._column)
            elif final == "X":
                self._fill(int(token[1] or 1))
            elif token[0][0] == "\n":
                self._row += 1
            elif token[0][0] == "\r":
                self._column = 0
            elif token[0][0] >= " ":
                self._write(token[0])

    def _colour(self, numbers: list[int]) -> None:
        """Keep the background only: it is what a cursor is told by."""
        position = 0
        while position < len(numbers):
            number = numbers[position]
            size = 1
            if number in (38, 48):
                size = 5 if numbers[position + 1 : position + 2] == [2] else 3
            if number in (0, 49):
                self._style = ""
            elif number == 48 or 40 <= number <= 47 or 100 <= number <= 107:
                self._style = ";".join(map(str, numbers[position : position + size]))
            position += size

    def _fill(self, columns: int) -> None:
        start = self._column
        self._write(" " * columns)
        self._column = start

    def _write(self, text: str) -> None:
        for character in text:
            if 0 <= self._row < self.rows and 0 <= self._column < self.columns:
                self._cells[self._row][self._column] = (character, self._style)
            self._column += 1
