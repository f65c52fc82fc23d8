"""The slow log by command and namespace, large requests and replies in Valkey, latency events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.panel import About, Line, Lines, Panel
from rtui.analysis.health.sample import LatencyEvent, LoggedCommand, Source
from rtui.analysis.health.view import HealthView
from rtui.analysis.query.patterns import PatternStep, pattern_text
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.text.display import SafeText, display
from rtui.keyspace.text.identifiers import Identifiers, KeySegments
from rtui.keyspace.text.segments import DEFAULT_SEPARATORS, Separators

MOST_LEVELS: Final = 32
"""Segments of a name that are told apart; the last one holds the rest."""

_CUT: Final = re.compile(rb"\.\.\. \([0-9]+ more (?:bytes|arguments)\)\Z")

_WITHOUT_KEY: Final = frozenset({
    "ACL", "ASKING", "AUTH", "BGREWRITEAOF", "BGSAVE", "CLIENT", "CLUSTER", "CLUSTERSCAN", "COMMAND", "COMMANDLOG",
    "CONFIG", "DBSIZE", "DEBUG", "DISCARD", "ECHO", "EXEC", "FAILOVER", "FLUSHALL", "FLUSHDB", "FUNCTION", "HELLO",
    "HOTKEYS", "INFO", "KEYS", "LASTSAVE", "LATENCY", "LOLWUT", "MODULE", "MONITOR", "MULTI", "PING", "PSUBSCRIBE",
    "PSYNC", "PUBLISH", "PUBSUB", "PUNSUBSCRIBE", "QUIT", "RANDOMKEY", "READONLY", "READWRITE", "REPLCONF",
    "REPLICAOF", "RESET", "ROLE", "SAVE", "SCAN", "SCRIPT", "SELECT", "SHUTDOWN", "SLAVEOF", "SLOWLOG", "SPUBLISH",
    "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SWAPDB", "SYNC", "TIME", "UNSUBSCRIBE", "UNWATCH", "WAIT", "WAITAOF",
})  # fmt: skip

_FIRST_KEY: Final = {
    **dict.fromkeys(("BITOP", "MEMORY", "OBJECT", "XGROUP", "XINFO"), 2),
    **dict.fromkeys(("LMPOP", "SINTERCARD", "ZDIFF", "ZINTER", "ZINTERCARD", "ZMPOP", "ZUNION"), 2),
    **dict.fromkeys(("BLMPOP", "BZMPOP", "MIGRATE"), 3),
}
"""The index of the first key, for commands where it does not follow the name."""

_AFTER_A_NUMBER: Final = frozenset({"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"})
"""Commands whose second argument says how many keys follow."""

_AFTER_STREAMS: Final = frozenset({"XREAD", "XREADGROUP"})


def first_key(entry: LoggedCommand) -> bytes | None:
    command, argv = entry.name, entry.argv
    if command in _WITHOUT_KEY or command.startswith("FT."):
        return None
    at = _FIRST_KEY.get(command, 1)
    if command in _AFTER_A_NUMBER:
        at = 3 if len(argv) > 2 and argv[2].isdigit() and int(argv[2][:9]) else len(argv)
    elif command in _AFTER_STREAMS:
        at = next((at + 1 for at, one in enumerate(argv) if one.upper() == b"STREAMS"), len(argv))
    return argv[at] if at < len(argv) else None


class NameFolding:
    """Folds names of a keyspace to patterns."""

    def __init__(self, separators: Sequence[bytes] = DEFAULT_SEPARATORS) -> None:
        self._segments = KeySegments(Separators(separators))
        self._form = Identifiers(separators).form

    def pattern(self, key: bytes) -> bytes:
        """Return the pattern of a key as it is typed and shown; for a cut key its namespace's pattern."""
        whole = _CUT.sub(b"", key)
        steps = [self._step(*segment) for segment in self._segments.of(whole, MOST_LEVELS)]
        return pattern_text(steps if whole == key else steps[:-1])

    def _step(self, name: bytes, separator: bytes) -> PatternStep:
        folded = self._form(name).pattern
        return PatternStep(name if folded is None else folded, separator, folded is not None)


@dataclass(frozen=True, slots=True)
class LoggedGroup:
    """Entries of one log with one command and one pattern of keys."""

    command: str
    pattern: bytes
    """As it is typed; empty where no key is named."""
    entries: tuple[LoggedCommand, ...]
    """Latest first; at least one."""
    is_own: bool

    @property
    def largest(self) -> LoggedCommand:
        return max(self.entries, key=lambda one: one.amount)

    @property
    def total(self) -> int:
        """All of them together: microseconds or bytes."""
        return sum(one.amount for one in self.entries)


def grouped(entries: Iterable[LoggedCommand], folding: NameFolding) -> tuple[LoggedGroup, ...]:
    found: dict[tuple[str, bytes, bool], list[LoggedCommand]] = {}
    for entry in entries:
        key = first_key(entry)
        pattern = b"" if key is None else folding.pattern(key)
        found.setdefault((entry.name, pattern, entry.is_own), []).append(entry)
    groups = [LoggedGroup(command, pattern, tuple(some), own) for (command, pattern, own), some in found.items()]
    return tuple(sorted(groups, key=lambda one: -one.total))


SLOW: Final = "command-slow"
BIG_SLOW: Final = "key-big-slow"
_OFF: Final = "-1"
_NAME_LIMIT: Final = 60
_COMMAND: Final = Column("command", "command", Unit.TEXT, 14)
_NAMESPACE: Final = Column("namespace", "key pattern", Unit.NAME)
_ENTRIES: Final = Column("entries", "entries", Unit.COUNT, 7)
_LONGEST: Final = Column("longest", "longest", Unit.DURATION, 9)
_TOOK: Final = Column("took", "total time", Unit.DURATION, 9)
_LARGEST: Final = Column("largest", "largest", Unit.BYTES, 9)
_BYTES: Final = Column("bytes", "total", Unit.BYTES, 9)
_LATEST: Final = Column("latest", "latest, UTC", Unit.TIME, 19)
_CLIENT: Final = Column("client", "client", Unit.TEXT, 21)
_EVENT: Final = Column("event", "event", Unit.TEXT, 24)
_NOW: Final = Column("last", "last", Unit.DURATION, 8)
_HIGHEST: Final = Column("highest", "highest", Unit.DURATION, 8)
_TIMES: Final = Column("times", "times", Unit.COUNT, 6, "Events remembered by the server: up to 160")
_WHEN: Final = Column("when", "when, UTC", Unit.TIME, 19)
_TOOK_ONE: Final = Column("took", "took", Unit.DURATION, 8)
_LINE: Final = Column("line", "command", Unit.TEXT, 0, "The server keeps 32 arguments of up to 128 bytes each")
_ARGUMENTS: Final = Column(
    "arguments", "arguments", Unit.COUNT, 6, "Number of arguments of the whole command (Redis 8.10+)"
)
_NUMBER: Final = Column("id", "id", Unit.NUMBER, 8)

MOST_SET: Final = 2**63 - 1
"""No setting of a server is more."""

MOST_MOMENTS: Final = 200

_LOGS: Final = (
    ("slow", Source.SLOW_LOG, "Slow commands", (_LONGEST, _TOOK), 1e6),
    ("large_requests", Source.LARGE_REQUESTS, "Large requests", (_LARGEST, _BYTES), 1),
    ("large_replies", Source.LARGE_REPLIES, "Large replies", (_LARGEST, _BYTES), 1),
)
"""The field of a sample, the source, the title, the columns of amounts and the divisor of amounts."""


def slow_panel(view: HealthView) -> Panel:
    notes = []
    if view.setting("slowlog-log-slower-than") == _OFF:
        notes.append(SafeText("The slow log is off: slowlog-log-slower-than is -1"))
    if view.setting("latency-monitor-threshold") == "0":
        notes.append(SafeText("The latency monitor is off: latency-monitor-threshold is 0"))
    return Panel("slow", "Slow", tuple(_lines(view)), tuple(_tables(view)), tuple(notes))


def logged(view: HealthView, source: Source) -> tuple[LoggedCommand, ...]:
    told = view.told(source)
    if told is None:
        return ()
    entries = {Source.LARGE_REQUESTS: told.large_requests, Source.LARGE_REPLIES: told.large_replies}
    return entries.get(source, told.slow)


def folding(view: HealthView) -> NameFolding:
    separators: Sequence[bytes] = () if view.report is None else view.report.head.scope.separators
    return NameFolding(separators or DEFAULT_SEPARATORS)


def _lines(view: HealthView) -> Iterator[Line]:
    lines = Lines(view, Source.SLOW_LOG)
    entries = logged(view, Source.SLOW_LOG)
    others = [one for one in entries if not one.is_own]
    longest_ms = view.levels.number(SLOW, "longest")
    slow: Cell = sum(one.amount > longest_ms * 1000 for one in others)
    own: Cell = len(entries) - len(others)
    if Source.SLOW_LOG in view.latest.missing:
        slow = own = view.unknown(Source.SLOW_LOG)
    said = f"in the last {humanize.counted(len(entries), 'entry')} of the slow log" if entries else ""
    about = About(said, f"none over {humanize.seconds(longest_ms / 1000)}", SLOW)
    yield lines.given("slow_entries", "slow commands", Unit.COUNT, slow, about)
    yield lines.given("slow_entries_of_rtui", "slow commands of rtui", Unit.COUNT, own, About(normal="none"))
    for name, title, scale, unit in (
        ("slowlog-log-slower-than", "slow log threshold", 1e6, Unit.DURATION),
        ("slowlog-max-len", "slow log length", 1, Unit.COUNT),
        ("latency-monitor-threshold", "latency monitor from", 1e3, Unit.DURATION),
        ("commandlog-request-larger-than", "large request from", 1, Unit.BYTES),
        ("commandlog-reply-larger-than", "large reply from", 1, Unit.BYTES),
    ):
        value = view.setting(name)
        if value is not None and value.isdigit():
            off = name == "latency-monitor-threshold" and value == "0"
            cell: Cell = "off" if off else int(value) / scale if scale > 1 else int(value)
            if int(value) > MOST_SET:
                cell = Unknown(Reason.IMPOSSIBLE, f"the server says {value[:40]}")
            yield lines.given(name.replace("-", "_"), title, unit, cell)


def _tables(view: HealthView) -> Iterator[Table]:
    folds = folding(view)
    for field, source, title, columns, divisor in _LOGS:
        groups = grouped(logged(view, source), folds)
        if groups:
            yield Table(
                field,
                f"{title} by command and key pattern",
                (_COMMAND, _NAMESPACE, _ENTRIES, *columns, _LATEST, _CLIENT),
                tuple(
                    (
                        SafeText(f"{_text(one.command)} (rtui)" if one.is_own else _text(one.command)),
                        one.pattern or None,
                        len(one.entries),
                        one.largest.amount / divisor,
                        one.total / divisor,
                        one.entries[0].at_s,
                        caller(one.largest.client_name, one.largest.address),
                    )
                    for one in groups
                ),
                tuple(first_key(one.largest) for one in groups),
            )
    for field, source, title, columns, divisor in _LOGS:
        entries = logged(view, source)
        if entries:
            one_of = replace(columns[0], title="took" if source is Source.SLOW_LOG else "bytes", id="amount")
            yield Table(
                f"{field}_entries",
                f"{title}, latest first",
                (_WHEN, one_of, _LINE, _ARGUMENTS, _CLIENT, _NUMBER),
                tuple(
                    (
                        one.at_s,
                        one.amount / divisor,
                        command_line(one),
                        one.argument_count,
                        caller(one.client_name, one.address),
                        one.id,
                    )
                    for one in entries
                ),
                tuple(map(first_key, entries)),
            )
    told = view.told(Source.LATENCY_EVENTS)
    if told is not None and told.latency:
        yield Table("latency", "Latency events", (_EVENT, _NOW, _HIGHEST, _TIMES, _LATEST), _events(told.latency))
        yield _history(told.latency)


def _history(events: Sequence[LatencyEvent]) -> Table:
    moments = sorted(((at_s, one.name, ms / 1000) for one in events for at_s, ms in one.history), reverse=True)
    note = f"The latest {MOST_MOMENTS} of {len(moments):,}." if len(moments) > MOST_MOMENTS else ""
    columns = (_WHEN, _EVENT, _TOOK_ONE)
    return Table("latency_history", "Latency events, latest first", columns, tuple(moments[:MOST_MOMENTS]), note=note)


def _events(events: Sequence[LatencyEvent]) -> tuple[tuple[Cell, ...], ...]:
    """Return a row each, the longest first; how often it was is not known where its history was not read."""
    highest = sorted(events, key=lambda one: -one.highest_ms)
    return tuple(
        (one.name, one.latest_ms / 1000, one.highest_ms / 1000, len(one.history) or None, one.at_s) for one in highest
    )


def caller(name: bytes, address: bytes) -> SafeText:
    return SafeText(" ".join(display(one, limit=_NAME_LIMIT) for one in (name, address) if one))


def command_line(entry: LoggedCommand) -> SafeText:
    return SafeText(" ".join(display(one, limit=_NAME_LIMIT) or '""' for one in entry.argv))


def _text(name: str) -> SafeText:
    return display(name.encode("utf-8", "replace"), limit=_NAME_LIMIT)


def group_name(one: LoggedGroup) -> SafeText:
    """Return a group in words: `SMEMBERS of shop:tags:<id>`."""
    return SafeText(f"{_text(one.command)} of {display(one.pattern)}" if one.pattern else _text(one.command))
