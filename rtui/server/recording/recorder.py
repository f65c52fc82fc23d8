"""Recording a session: each line is written soon after its event, by a thread that never delays the session.

Events are on the disk within `FLUSH_S`, so a killed session can be replayed almost to its end. The file ends at its
size limit, or if writing falls too far behind; `Recorder.ended` has the reason. Of commands with a password only the
name is kept.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from rtui.keyspace.text.display import display_text
from rtui.server.files import reason_of
from rtui.server.guard.command import Command, SecretBytes, unpack_requests
from rtui.server.options import BrowseOptions
from rtui.server.recording.document import MAX_FILE_BYTES, End, EndReason, Exchange, Header, Input, as_json
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import ExitCode, Reply, RtuiError, ServerError

MOST_WAITING_BYTES: Final = 64 << 20
"""The most bytes that may wait in memory to be written."""

FLUSH_S: Final = 0.5

PATIENCE_S: Final = 5.0


class RecordError(RtuiError):
    """A file that can't be created."""

    exit_code = ExitCode.OUTPUT

    def __init__(self, happened: str) -> None:
        super().__init__("The session can't be recorded", happened, "Name a new file.")


Work = Callable[[], Sequence[Exchange | Input | End]]


class Recorder:
    """Writes a session to a file that only its owner may read."""

    def __init__(self, path: Path, *, most_bytes: int = MAX_FILE_BYTES) -> None:
        """Create the file; raises RecordError if it exists or can't be created."""
        self.path = path
        self.seed = secrets.randbits(62)
        self.ended: End | None = None
        """The event that ended the recording."""
        self.failure: str | None = None
        """The reason why the file can't be written, a sentence."""
        self.cursor_place: tuple[bool, bytes] | None = None
        """Whether the row with the cursor is a key, and its name, as last recorded."""
        self._most_bytes = most_bytes
        self._began_s = time.monotonic()
        self._encoder = msgspec.json.Encoder()
        self._waiting: deque[tuple[Work, int]] = deque()
        self._waiting_bytes = 0
        self._header: bytes | None = None
        self._is_closing = False
        self._changed = threading.Condition()
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(path.expanduser(), flags, 0o600)
            os.fchmod(descriptor, 0o600)
        except (OSError, ValueError) as error:
            raise RecordError(f"{path} can't be made: {reason_of(error)}.") from None
        self._thread = threading.Thread(target=partial(self._work, descriptor), name="rtui recording", daemon=True)
        atexit.register(self.close)

    @property
    def at_ms(self) -> float:
        return round(1000 * (time.monotonic() - self._began_s), 3)

    def begin(self, header: Header) -> None:
        self._header = self._encoder.encode(header) + b"\n"
        self._began_s = time.monotonic()
        self._thread.start()

    def attach(self, log: CommandLog, db: int) -> None:
        log.on_replies.append(partial(self._on_replies, db))

    def add(self, line: Input) -> None:
        """Record an input, whose texts must be harmless already."""
        self._queue(lambda: (line,), 200)

    @property
    def why_ended(self) -> str:
        """The reason why recording has ended, in a sentence."""
        if self.failure is not None:
            return self.failure
        reasons = {
            "size": "The file has reached its maximum size.",
            "server": "Another server was chosen; a recording is of one.",
            "cluster": "A recording is of one server: --only-node records one node of a cluster.",
            "slow": "Writing the file was too slow.",
            "left": "The session is over.",
        }
        why = "" if self.ended is None else reasons[self.ended.why]
        return f"Recording stopped. {why}".strip()

    def end(self, why: EndReason) -> None:
        if self.ended is None:
            end = End(self.at_ms, why)
            self._queue(lambda: (end,), 100)
            self.ended = end

    def close(self) -> None:
        atexit.unregister(self.close)
        if self._header is None or not self._thread.is_alive():
            return
        self.end("left")
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(PATIENCE_S)

    def _on_replies(self, db: int, commands: Sequence[Command], replies: Sequence[Reply], took_s: float) -> None:
        if self.ended is not None:
            return
        took_ms = round(1000 * took_s, 3)
        at_ms = max(0.0, round(self.at_ms - took_ms, 3))
        kept = list(replies)
        size = 300 * len(kept) + sum(map(_size, kept))
        self._queue(lambda: self._to_exchanges(db, commands, kept, at_ms, took_ms), size)

    def _to_exchanges(
        self, db: int, commands: Sequence[Command], replies: Sequence[Reply], at_ms: float, took_ms: float
    ) -> list[Exchange]:
        lines, left = [], iter(replies)
        for command in commands:
            is_secret = isinstance(command.packed, SecretBytes)
            named = tuple(command.name.encode().split(b" "))
            requests = [named] if is_secret else unpack_requests(command.request)
            for argv in requests:
                reply, line = next(left), list(argv)
                if is_secret:
                    reply = ServerError(f"{reply.code} refused") if isinstance(reply, ServerError) else b"OK"
                words = [word.decode("latin-1") for word in line]
                lines.append(Exchange(at_ms, took_ms, db, words, as_json(reply)))
        return lines

    def _queue(self, work: Work, size: int) -> None:
        if self.ended is not None:
            return
        with self._changed:
            if self._waiting_bytes > MOST_WAITING_BYTES:
                self.ended = end = End(self.at_ms, "slow")
                self._waiting.append((lambda: (end,), 0))
            else:
                self._waiting.append((work, size))
                self._waiting_bytes += size
            self._changed.notify()

    def _work(self, descriptor: int) -> None:
        """Write until the session is over, or the file is full or fails."""
        compressor = zlib.compressobj(wbits=31) if self.path.suffix == ".gz" else None
        written = 0
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:

                def write(data: bytes) -> None:
                    if compressor is not None:
                        data = compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
                    view = memoryview(data)
                    while view:
                        view = view[file.write(view) :]

                write(self._header or b"")
                written += len(self._header or b"")
                while works := self._next():
                    lines = b"".join(self._encoder.encode(line) + b"\n" for work in works for line in work())
                    if written + len(lines) > self._most_bytes - 200:
                        lines = lines[: lines.rfind(b"\n", 0, max(0, self._most_bytes - 200 - written)) + 1]
                        self.ended = End(self.at_ms, "size")
                        lines += self._encoder.encode(self.ended) + b"\n"
                        write(lines)
                        break
                    write(lines)
                    written += len(lines)
                if compressor is not None:
                    file.write(compressor.flush(zlib.Z_FINISH))
        except OSError as error:
            self.failure = display_text(f"{self.path} can't be written: {reason_of(error)}.")
            self.ended = End(self.at_ms, "slow")

    def _next(self) -> list[Work]:
        """Wait a moment to gather events and return them; empty when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            if not self._is_closing:
                self._changed.wait_for(lambda: self._is_closing, FLUSH_S)
            works = [work for work, _ in self._waiting]
            self._waiting.clear()
            self._waiting_bytes = 0
            return works


def session_header(
    recorder: Recorder, options: BrowseOptions, *, size: tuple[int, int], settings: dict[str, Any], version: str
) -> Header:
    """Return the header of a recording with these options; `size` is columns and rows."""
    match = options.match
    return Header(
        rtui=version,
        began_ms=time.time() * 1000,
        seed=recorder.seed,
        server=options.target.label[:300],
        db=options.target.db,
        protocol=options.target.protocol,
        separators=[separator.decode("latin-1") for separator in options.separators],
        match=None if match is None else match.decode("latin-1"),
        key_type=None if options.key_type is None else options.key_type.decode("latin-1"),
        pace=options.pace,
        columns=None if options.columns is None else str(options.columns),
        ascii=options.ascii_only,
        no_color=options.no_color,
        width=size[0],
        height=size[1],
        registry=options.registry.source or None if options.registry is not None else None,
        settings={**settings, **({} if options.theme is None else {"theme": options.theme})},
    )


def _size(reply: Reply) -> int:
    if isinstance(reply, bytes):
        return len(reply)
    if isinstance(reply, list):
        return sum(50 + _size(element) for element in reply)
    return 50
