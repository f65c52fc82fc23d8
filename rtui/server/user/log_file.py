"""Writing the command log to a file, one line of JSON per entry, without ever delaying a session.

A thread writes the entries in batches. If the file can't be opened or written, as on a full disk, writing ends with the
reason in `CommandLog.failure`, and the session goes on. While the file accepts no data, such as a pipe without a
reader, entries beyond `MOST_WAITING_BYTES` are left out, and a line gives their number.
"""

from __future__ import annotations

import atexit
import os
import stat
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from rtui.keyspace.text.display import display_text
from rtui.server.files import reason_of
from rtui.server.guard.command import unpack_requests
from rtui.server.user.copying import prompt_line
from rtui.server.wire.command_log import CommandLog, LogEntry, Outcome

MOST_WAITING_BYTES: Final = 4 << 20
"""The most bytes that may wait to be written."""

PATIENCE_S: Final = 2.0
"""The longest time that the end of a session waits for the file."""


class LogLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The JSON object of a log entry."""

    number: int
    time: str
    """UTC, to the millisecond."""
    connection: str
    purpose: str
    commands: dict[str, int]
    """The number of times that each was sent."""
    requests: list[str] = []
    """As typed at the prompt of redis-cli; empty for a summary of a bulk lane's commands."""
    cut: bool = False
    """Whether `requests` has only the beginning of the commands that were sent."""
    redacted: bool = False
    """Whether the command had a password, so that only its name is written."""
    bytes_out: int
    bytes_in: int
    ms: float
    outcome: Outcome
    owed: int = 0
    """The number of replies that have not arrived."""
    error: str = ""


def log_line(entry: LogEntry) -> LogLine:
    """Return the JSON object of an entry."""
    at = datetime.fromtimestamp(entry.at_s, UTC).isoformat(timespec="milliseconds")
    return LogLine(
        number=entry.number,
        time=at.replace("+00:00", "Z"),
        connection=entry.connection,
        purpose=entry.purpose.value,
        commands=entry.counts,
        requests=[prompt_line(argv) for argv in unpack_requests(entry.request)],
        cut=entry.is_cut,
        redacted=entry.is_secret,
        bytes_out=entry.bytes_out,
        bytes_in=entry.bytes_in,
        ms=round(entry.ms, 3),
        outcome=entry.outcome,
        owed=entry.owed,
        error=entry.error,
    )


class CommandLogFile:
    """Appends each completed entry of a log to a file that only its owner may read."""

    def __init__(self, log: CommandLog, path: Path) -> None:
        self.path = path
        self._log = log
        self._encoder = msgspec.json.Encoder()
        self._lines: list[bytes] = []
        self._waiting_bytes = 0
        self._dropped = 0
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        try:
            descriptor = _open(path)
        except (OSError, ValueError) as error:
            self._fail(error)
            return
        self._thread = threading.Thread(target=partial(self._work, descriptor), name="rtui command log", daemon=True)
        self._thread.start()
        log.on_over.append(self._add)
        atexit.register(self.close)

    def close(self) -> None:
        """Write all waiting entries, also those without a reply yet, and close the file."""
        if self._thread is None:
            return
        atexit.unregister(self.close)
        self._log.end()
        self._log.on_over.remove(self._add)
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            self._fail(TimeoutError("it takes nothing"))
        self._thread = None

    def _add(self, entry: LogEntry) -> None:
        if self._log.failure is not None:
            return
        with self._changed:
            if self._waiting_bytes > MOST_WAITING_BYTES:
                self._dropped += 1
                return
            if self._dropped:
                self._lines.append(self._encoder.encode({"left_out": self._dropped}))
                self._dropped = 0
            line = self._encoder.encode(log_line(entry))
            self._lines.append(line)
            self._waiting_bytes += len(line)
            self._changed.notify()

    def _work(self, descriptor: int) -> None:
        """Write until the log is closed or the file fails."""
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                while lines := self._next():
                    data = memoryview(b"\n".join([*lines, b""]))
                    while data:
                        data = data[file.write(data) :]
        except OSError as error:
            self._fail(error)

    def _next(self) -> list[bytes]:
        """Wait for lines and return them; empty when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._is_closing)
            lines, self._lines, self._waiting_bytes = self._lines, [], 0
            if self._dropped and (lines or self._is_closing):
                lines.append(self._encoder.encode({"left_out": self._dropped}))
                self._dropped = 0
            return lines

    def _fail(self, error: Exception) -> None:
        self._log.failure = display_text(f"The command log is not written to {self.path}: {reason_of(error)}.")


def _open(path: Path) -> int:
    """Open a file for appending that only its owner may read; a pipe needs a reader."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path.expanduser(), flags, 0o600)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)
        os.set_blocking(descriptor, True)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
