"""The rows of the command log and their lines.

A row is an entry that the filter keeps, or the entries of one moment that ask the server about itself.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Final, TypeAlias

from rtui.analysis import humanize
from rtui.analysis.humanize import counted
from rtui.keyspace.slices import Slices
from rtui.keyspace.text.display import SafeText
from rtui.server.guard.command import unpack_requests
from rtui.server.wire.command_log import CommandLog, LogEntry, Purpose
from rtui.tui.kit.layout import LinePart, display, display_text, fitted, prose
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, joined, left, line_width, literal, right, wrap

_FRAMING: Final = re.compile(rb"(?:^|\r\n)(?:[*$]\d+\r\n)*")

LEAVES_OUT: Final = "!"
"""A filter that begins with it keeps the entries without the text behind it."""

SLICE_ENTRIES: Final = 1000
"""Entries that are searched in one slice."""

MOST_UNDECIDED: Final = 500
"""Latest entries that are checked again while they may change."""


TOGETHER_S: Final = 0.1
"""Seconds within which questions about the server itself are one row: nine commands every few seconds."""


def has_text(entry: LogEntry, needle: bytes) -> bool:
    """Return whether an entry has a text, in small letters, in its commands, purpose, connection or outcome."""
    words = f"{entry.counts_text} {entry.purpose} {entry.connection} {entry.outcome} {entry.error}"
    return needle in words.lower().encode() or needle in _FRAMING.sub(b" ", entry.request).lower()


Row: TypeAlias = Sequence[LogEntry]
"""The entries of one row: one, or several that asked the server about itself at once."""


def is_one_row(first: LogEntry, entry: LogEntry) -> bool:
    """Return whether two entries asked the server about itself at once, on one connection."""
    return (
        first.purpose is Purpose.SERVER
        and entry.purpose is Purpose.SERVER
        and first.connection == entry.connection
        and not (first.is_sum or entry.is_sum)
        and abs(entry.at_s - first.at_s) <= TOGETHER_S
    )


class LogRows:
    """The entries that a filter keeps, oldest first: `load` takes all in the log, `follow` the new ones.

    Whether an entry is kept is decided when it is over, since the commands of a sum come one after the other.
    """

    def __init__(self, log: CommandLog, needle: str = "") -> None:
        self.needle = needle
        self._log = log
        self._leaves_out = needle.startswith(LEAVES_OUT)
        self._needle = needle.removeprefix(LEAVES_OUT).lower().encode("utf-8", "surrogateescape")
        self._rows: deque[list[LogEntry]] = deque()
        self._seen = 0
        """The number of the last entry that is decided."""

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, line: int) -> Row:
        return self._rows[line]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @property
    def entries(self) -> int:
        return sum(map(len, self))

    def line_of(self, wanted: LogEntry) -> int | None:
        return next((line for line, row in enumerate(self) if wanted in row), None)

    def load(self) -> Slices[None]:
        """Load all entries of the log, in slices of a few milliseconds."""
        log = self._log
        for at, entry in enumerate(tuple(log.entries), 1):
            if not self._may_decide(entry):
                break
            self._seen = entry.number
            if self._keeps(entry):
                self._put(entry)
            if not at % SLICE_ENTRIES:
                yield
        self.follow()

    def follow(self) -> int:
        """Take new entries and drop those dropped by the log; return the number of rows removed at the top."""
        log, rows, gone = self._log, self._rows, 0
        while rows and rows[0][0].number <= log.dropped:
            del rows[0][0]
            if not rows[0]:
                rows.popleft()
                gone += 1
        while rows and rows[-1][-1].number > self._seen:  # these are decided anew
            rows[-1].pop()
            if not rows[-1]:
                rows.pop()
        may_decide = True
        for entry in self._since(max(self._seen, log.dropped)):
            may_decide = may_decide and self._may_decide(entry)
            if may_decide:
                self._seen = entry.number
            if self._keeps(entry):
                self._put(entry)
        return gone

    def _put(self, entry: LogEntry) -> None:
        if self._rows and is_one_row(self._rows[-1][0], entry):
            self._rows[-1].append(entry)
        else:
            self._rows.append([entry])

    def _may_decide(self, entry: LogEntry) -> bool:
        return entry.is_over or self._log.dropped + len(self._log.entries) - entry.number > MOST_UNDECIDED

    def _keeps(self, entry: LogEntry) -> bool:
        return not self._needle or has_text(entry, self._needle) is not self._leaves_out

    def _since(self, number: int) -> Iterator[LogEntry]:
        new = self._log.dropped + len(self._log.entries) - number
        return reversed(list(islice(reversed(self._log.entries), max(0, new))))


NAME_LIMIT: Final = 120
WHOLE_LIMIT: Final = 4096
"""Characters of an argument in the view of one entry at most."""

TIME_CELLS: Final = 12
CONNECTION_CELLS: Final = 14
PURPOSE_CELLS: Final = 15
BYTES_CELLS: Final = 8
MS_CELLS: Final = 8
GAP_CELLS: Final = 2
MIN_COMMAND_CELLS: Final = 24

REDACTED: Final = literal("(redacted)")
"""Stands for the arguments of a command with a password."""


@dataclass(frozen=True, slots=True)
class LogLayout:
    """The columns that fit beside the command; a width of 0 leaves one out."""

    command: int
    time: int = 0
    connection: int = 0
    purpose: int = 0
    out: int = 0
    received: int = 0
    ms: int = 0


COLUMN_CELLS: Final = {
    "ms": MS_CELLS,
    "time": TIME_CELLS,
    "purpose": PURPOSE_CELLS,
    "received": BYTES_CELLS,
    "out": BYTES_CELLS,
    "connection": CONNECTION_CELLS,
}
"""The columns beside the command, the last to go first."""


def layout_log(width: int, columns: Sequence[str] = tuple(COLUMN_CELLS)) -> LogLayout:
    """Return the columns that fit into a width beside the command."""
    room = width - 2 - min(MIN_COMMAND_CELLS, max(1, width - 2))
    kept = {}
    for name in columns:
        cells = COLUMN_CELLS[name]
        if cells + GAP_CELLS > room:
            break
        kept[name] = cells
        room -= cells + GAP_CELLS
    return LogLayout(width - 2 - sum(kept.values()) - GAP_CELLS * len(kept), **kept)


def header_line(layout: LogLayout) -> Line:
    titles = (literal("time"), literal("connection"), literal("for"), literal("command"))
    figures = (literal("out"), literal("in"), literal("ms"))
    return _row(layout, [(title, Role.MUTED) for title in (*titles, *figures)])


def in_sum(row: Row) -> LogEntry:
    """Return the entry of a row; of several, their sum."""
    first = row[0]
    if len(row) == 1:
        return first
    sent = Counter[str]()
    for one in row:
        sent.update(one.sent)
    return replace(
        first,
        sent=dict(sent),
        request=b"",
        bytes_out=sum(one.bytes_out for one in row),
        bytes_in=sum(one.bytes_in for one in row),
        replies=sum(one.replies for one in row),
        owed=sum(one.owed for one in row),
        ms=max(1000 * (one.sent_s - first.sent_s) + one.ms for one in row),
        error=next((one.error for one in row if one.error), ""),
        is_over=all(one.is_over for one in row),
    )


def row_line(row: Row, layout: LogLayout) -> Line:
    entry = in_sum(row)
    outcome = entry.outcome
    role = {"lost": Role.WARN, "error": Role.WARN}.get(outcome, Role.TEXT)
    command = command_text(entry)
    if entry.error:
        code = SafeText(f" {display_text(entry.error)}")
        command = SafeText(cut(command, layout.command - len(code)) + code)
    took = literal("lost") if outcome == "lost" else literal("…") if outcome == "waiting" else ms_text(entry.ms)
    received = literal("–") if outcome == "lost" and not entry.bytes_in else humanize.size(entry.bytes_in)
    return _row(
        layout,
        [
            (SafeText(f"{datetime.fromtimestamp(entry.at_s, UTC):%H:%M:%S.%f}"[:-3]), Role.MUTED),
            (SafeText(entry.connection), Role.MUTED),
            (SafeText(entry.purpose.value), Role.MUTED),
            (command, role),
            (humanize.size(entry.bytes_out), Role.MUTED),
            (received, Role.MUTED),
            (took, role if outcome == "lost" else Role.TEXT),
        ],
    )


def _row(layout: LogLayout, cells: list[tuple[SafeText, Role]]) -> Line:
    widths = (layout.time, layout.connection, layout.purpose, layout.command, layout.out, layout.received, layout.ms)
    spans: list[Span] = [gap(1)]
    for at, ((text, role), width) in enumerate(zip(cells, widths, strict=True)):
        if width:
            fit = right if at > 3 else left
            spans += ([gap(GAP_CELLS)] if len(spans) > 1 else []) + [Span(fit(text, width), role)]
    return tuple(spans)


def command_text(entry: LogEntry) -> SafeText:
    """Return the text of a row: the command with its arguments, or several with their counts."""
    if entry.is_secret:
        return joined([SafeText(entry.counts_text), REDACTED], " ")
    if entry.commands == 1 and not entry.is_sum:
        return _request_text(next(unpack_requests(entry.request)), NAME_LIMIT)
    return SafeText(entry.counts_text)


def _request_text(argv: tuple[bytes, ...], limit: int) -> SafeText:
    """Return a command line, each argument at most `limit` characters; an empty one is shown as quotes."""
    return joined([display(argument, limit=limit) or literal('""') for argument in argv], " ")


def ms_text(ms: float) -> SafeText:
    """Return milliseconds, with one figure after the point below a hundred."""
    return SafeText(f"{ms:.1f}" if ms < 99.95 else f"{ms:,.0f}")


def summary_line(log: CommandLog, shown: int, needle: str, width: int) -> Line:
    """Return the sums of the log, the number of dropped entries, and whether the file is written."""
    pieces = [
        LinePart(0, (Span(counted(log.commands, "command"), Role.STRONG),)),
        LinePart(1, (Span(SafeText(f"{humanize.size(log.bytes_out)} sent")),)),
        LinePart(1, (Span(SafeText(f"{humanize.size(log.bytes_in)} received")),)),
        LinePart(3, (Span(counted(len(log.entries), "entry", plural="entries"), Role.MUTED),)),
    ]
    if log.dropped:
        pieces.append(LinePart(2, (Span(SafeText(f"{humanize.count(log.dropped)} older dropped"), Role.WARN),)))
    if needle:
        found = SafeText(f"{humanize.count(shown)} {_with(needle)}")
        pieces.insert(0, LinePart(0, (Span(found, Role.ACCENT),)))
    if log.failure is not None:
        pieces.insert(0, LinePart(0, (Span(log.failure, Role.WARN),)))
    line = clip((gap(1), *fitted(pieces, width - 2)), width)
    return (*line, gap(width - line_width(line)))


def _with(needle: str) -> SafeText:
    """Return a filter in words, such as `with "facts"`."""
    word, text = ("without", needle[1:]) if needle.startswith("!") else ("with", needle)
    return SafeText(f'{word} "{display_text(text, limit=40)}"')


def empty_lines(log: CommandLog, needle: str, width: int) -> list[Line]:
    if not needle:
        return [(), *prose(literal("Nothing has been sent yet."), width, Role.MUTED)]
    count = counted(len(log.entries), "entry", plural="entries")
    text = SafeText(f"None of {count} is {_with(needle)}.")
    return [(), *prose(text, width, Role.MUTED)]


SUM: Final = literal(
    "A bulk connection sends tens of thousands of commands a second: they are counted, not kept one by one."
)
"""Why a sum shows no arguments."""

OUTCOMES: Final = {
    "waiting": literal("not answered yet"),
    "answered": literal("answered"),
    "error": literal("error reply"),
    "lost": literal("the connection ended before all replies arrived"),
}
"""The outcomes of a command, for the view of one entry."""


def whole_lines(row: Row, width: int) -> list[Line]:
    """Return all details of a row: of its entry, or of several together and of each of them."""
    entry = in_sum(row)
    at = datetime.fromtimestamp(entry.at_s, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    outcome = OUTCOMES[entry.outcome]
    if entry.error:
        outcome = SafeText(f"{outcome}: {display_text(entry.error)}")
    came = entry.replies - entry.owed
    facts = [
        (literal("sent"), SafeText(f"{at} UTC")),
        (literal("connection"), SafeText(entry.connection)),
        (literal("for"), SafeText(entry.purpose.value)),
        (literal("outcome"), outcome),
        (literal("replies"), SafeText(f"{humanize.count(came)} of {humanize.count(entry.replies)}")),
        (literal("bytes"), SafeText(f"{humanize.count(entry.bytes_out)} out, {humanize.count(entry.bytes_in)} in")),
        (literal("time"), SafeText(f"{ms_text(entry.ms)} ms") if came else literal("–")),
    ]
    named = ((gap(1), Span(left(name, 12), Role.MUTED), Span(cut(text, width - 14))) for name, text in facts)
    lines: list[Line] = [(), *named]
    if len(row) == 1:
        return [*lines, (), *_sent_lines(entry, width)]
    layout = layout_log(width, ("ms", "received", "out"))
    return [*lines, (), header_line(layout), *(row_line([one], layout) for one in row)]


def _sent_lines(entry: LogEntry, width: int) -> list[Line]:
    """Return the commands of an entry, with their arguments if they are kept."""
    if entry.is_secret:
        why = literal("Its arguments are secret, such as a password, so they are not kept.")
        return [
            *_wrapped(joined([SafeText(entry.counts_text), REDACTED], " "), width),
            (),
            *prose(why, width, Role.MUTED),
        ]
    if entry.is_sum:
        lines: list[Line] = []
        for name, count in sorted(entry.counts.items(), key=lambda one: -one[1]):
            lines.append((gap(1), Span(left(SafeText(name), 20)), Span(right(humanize.count(count), 14))))
        return [*lines, (), *prose(SUM, width, Role.MUTED)]
    lines = []
    for argv in unpack_requests(entry.request):
        lines += _wrapped(_request_text(argv, WHOLE_LIMIT), width)
    if entry.is_cut:
        kept, size = humanize.count(len(entry.request)), humanize.count(entry.bytes_out)
        lines += [(), *prose(SafeText(f"The first {kept} of {size} bytes are kept."), width, Role.WARN)]
    return lines


def _wrapped(text: SafeText, width: int) -> list[Line]:
    return [(gap(1), Span(part)) for part in wrap(text, max(1, width - 2), WHOLE_LIMIT)]
