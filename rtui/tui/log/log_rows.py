"""The rows of the command log: the entries that a filter keeps, those in one row that ask the server about itself."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, MutableSequence, Sequence
from itertools import chain, islice, takewhile
from typing import Final, TypeAlias

from rtui.keyspace.slices import Slices
from rtui.server.wire.command_log import CommandLog, LogEntry, Purpose

_FRAMING: Final = re.compile(rb"(?:^|\r\n)(?:[*$]\d+\r\n)*")

LEAVES_OUT: Final = "!"
"""A filter that begins with it keeps the entries without the text behind it."""

SLICE_ENTRIES: Final = 1000
"""So many are searched at once."""

MOST_UNDECIDED: Final = 500
"""Of the latest entries so many are looked at again while they may change."""


TOGETHER_S: Final = 0.1
"""What asks the server about itself within so many seconds is one row: nine commands every few seconds."""


def has_text(entry: LogEntry, needle: bytes) -> bool:
    """Return whether an entry has a text, in small letters, in its commands, purpose, connection or outcome."""
    words = f"{entry.counts_text} {entry.purpose} {entry.connection} {entry.outcome} {entry.error}"
    return needle in words.lower().encode() or needle in _FRAMING.sub(b" ", entry.request).lower()


Row: TypeAlias = Sequence[LogEntry]
"""What stands in one row: an entry, or several that asked the server about itself at once."""


def is_one_row(first: LogEntry, entry: LogEntry) -> bool:
    """Return whether two entries asked the server about itself at once, on one connection."""
    return (
        first.purpose is Purpose.SERVER
        and entry.purpose is Purpose.SERVER
        and first.connection == entry.connection
        and not (first.is_sum or entry.is_sum)
        and abs(entry.at_s - first.at_s) <= TOGETHER_S
    )


def put(rows: MutableSequence[list[LogEntry]], entry: LogEntry) -> None:
    """Add an entry to the last row, or as one of its own."""
    if rows and is_one_row(rows[-1][0], entry):
        rows[-1].append(entry)
    else:
        rows.append([entry])


class LogRows:
    """The entries that a filter keeps, oldest first: `load` takes those there are, `follow` what the log has got since.

    Whether an entry is kept is decided when it is over, since the commands of a sum come one after the other.
    """

    def __init__(self, log: CommandLog, needle: str = "") -> None:
        self.needle = needle
        self._log = log
        self._leaves_out = needle.startswith(LEAVES_OUT)
        self._needle = needle.removeprefix(LEAVES_OUT).lower().encode("utf-8", "surrogateescape")
        self._decided: deque[list[LogEntry]] = deque()
        self._undecided: list[list[LogEntry]] = []
        """The first may go on with the last row that is decided, which then is not shown itself."""
        self._overlap = 0
        """1 where it does."""
        self._seen = 0
        """The number of the last entry that is decided."""

    def __len__(self) -> int:
        return len(self._decided) + len(self._undecided) - self._overlap

    def __getitem__(self, line: int) -> Row:
        beyond = line - (len(self._decided) - self._overlap)
        return self._decided[line] if beyond < 0 else self._undecided[beyond]

    def __iter__(self) -> Iterator[Row]:
        return chain(islice(self._decided, len(self._decided) - self._overlap), self._undecided)

    @property
    def entries(self) -> int:
        """How many entries are kept."""
        return sum(map(len, self))

    def line_of(self, wanted: LogEntry) -> int | None:
        """Return the line that an entry is in, None where it is not kept."""
        return next((line for line, row in enumerate(self) if wanted in row), None)

    def load(self) -> Slices[None]:
        """Take what there is, in slices of a few milliseconds."""
        log = self._log
        for at, entry in enumerate(tuple(log.entries), 1):
            if not self._may_decide(entry):
                break
            self._seen = entry.number
            if self._keeps(entry):
                put(self._decided, entry)
            if not at % SLICE_ENTRIES:
                yield
        self.follow()

    def follow(self) -> int:
        """Take new entries, and drop those that the log has dropped; return how many rows that were first are gone."""
        log = self._log
        gone = sum(1 for _ in takewhile(lambda row: row[-1].number <= log.dropped, self))
        while self._decided and self._decided[0][0].number <= log.dropped:
            del self._decided[0][0]
            if not self._decided[0]:
                self._decided.popleft()
        waiting, may_decide = [], True
        for entry in self._since(max(self._seen, log.dropped)):
            may_decide = may_decide and self._may_decide(entry)
            if may_decide:
                self._seen = entry.number
            if self._keeps(entry):
                if may_decide:
                    put(self._decided, entry)
                else:
                    waiting.append(entry)
        self._overlap = int(bool(self._decided and waiting) and is_one_row(self._decided[-1][0], waiting[0]))
        self._undecided = [[*self._decided[-1]]] if self._overlap else []
        for entry in waiting:
            put(self._undecided, entry)
        return gone

    def _may_decide(self, entry: LogEntry) -> bool:
        """Whether an entry will not change any more, or has had long enough for it."""
        return entry.is_over or self._log.dropped + len(self._log.entries) - entry.number > MOST_UNDECIDED

    def _keeps(self, entry: LogEntry) -> bool:
        return not self._needle or has_text(entry, self._needle) is not self._leaves_out

    def _since(self, number: int) -> Iterator[LogEntry]:
        """Return the entries after the one of this number."""
        new = self._log.dropped + len(self._log.entries) - number
        return reversed(list(islice(reversed(self._log.entries), max(0, new))))
