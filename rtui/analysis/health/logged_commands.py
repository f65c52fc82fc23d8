"""The commands of the slow log and the two other command logs by the namespace of their keys.

Names fold as in a report: `GET shop:user:42:cart` and `GET shop:user:57:cart` are both GET of `shop:user:{id}:cart`.
A server cuts an argument after 128 bytes and says how many more there were; of such a key the last segment is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis.health.sample import LoggedCommand
from rtui.analysis.query.patterns import Step, pattern_text
from rtui.keyspace.text.identifiers import Identifiers
from rtui.keyspace.text.key_segments import KeySegments
from rtui.keyspace.text.segments import DEFAULT_SEPARATORS, Separators

MOST_LEVELS: Final = 32
"""Segments of a name that are told apart; the others stand in the last one."""

_CUT: Final = re.compile(rb"\.\.\. \([0-9]+ more (?:bytes|arguments)\)\Z")

_WITHOUT_KEY: Final = frozenset({
    "ACL", "ASKING", "AUTH", "BGREWRITEAOF", "BGSAVE", "CLIENT", "CLUSTER", "CLUSTERSCAN", "COMMAND", "COMMANDLOG",
    "CONFIG", "DBSIZE", "DEBUG", "DISCARD", "ECHO", "EXEC", "FAILOVER", "FLUSHALL", "FLUSHDB", "FUNCTION", "HELLO",
    "HOTKEYS", "INFO", "KEYS", "LASTSAVE", "LATENCY", "LOLWUT", "MODULE", "MONITOR", "MULTI", "PING", "PSUBSCRIBE",
    "PSYNC", "PUBLISH", "PUBSUB", "PUNSUBSCRIBE", "QUIT", "RANDOMKEY", "READONLY", "READWRITE", "REPLCONF",
    "REPLICAOF", "RESET", "ROLE", "SAVE", "SCAN", "SCRIPT", "SELECT", "SHUTDOWN", "SLAVEOF", "SLOWLOG", "SPUBLISH",
    "SSUBSCRIBE", "SUBSCRIBE", "SUNSUBSCRIBE", "SWAPDB", "SYNC", "TIME", "UNSUBSCRIBE", "UNWATCH", "WAIT", "WAITAOF",
})  # fmt: skip
"""Commands that name no key."""

_FIRST_KEY: Final = {
    **dict.fromkeys(("BITOP", "MEMORY", "OBJECT", "XGROUP", "XINFO"), 2),
    **dict.fromkeys(("LMPOP", "SINTERCARD", "ZDIFF", "ZINTER", "ZINTERCARD", "ZMPOP", "ZUNION"), 2),
    **dict.fromkeys(("BLMPOP", "BZMPOP", "MIGRATE"), 3),
}
"""Where the first key stands, of commands where that is not right behind the name."""

_AFTER_A_NUMBER: Final = frozenset({"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"})
"""Commands whose second argument says how many keys follow."""

_AFTER_STREAMS: Final = frozenset({"XREAD", "XREADGROUP"})


def first_key(entry: LoggedCommand) -> bytes | None:
    """Return the first key that a command names; None where it names none, or that can't be told."""
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
        """Return the pattern of a key as it is typed and shown; of a key that was cut, that of its namespace."""
        whole = _CUT.sub(b"", key)
        steps = [self._step(*segment) for segment in self._segments.of(whole, MOST_LEVELS)]
        return pattern_text(steps if whole == key else steps[:-1])

    def _step(self, name: bytes, separator: bytes) -> Step:
        folded = self._form(name).pattern
        return Step(name if folded is None else folded, separator, folded is not None)


@dataclass(frozen=True, slots=True)
class LoggedGroup:
    """Entries of one log with one command and one pattern of keys."""

    command: str
    pattern: bytes
    """As it is typed; empty where no key is named."""
    entries: tuple[LoggedCommand, ...]
    """Latest first; at least one."""
    is_own: bool
    """Whether rtui sent them."""

    @property
    def largest(self) -> LoggedCommand:
        """The one that took longest, or was largest."""
        return max(self.entries, key=lambda one: one.amount)

    @property
    def total(self) -> int:
        """All of them together: microseconds or bytes."""
        return sum(one.amount for one in self.entries)


def grouped(entries: Iterable[LoggedCommand], folding: NameFolding) -> tuple[LoggedGroup, ...]:
    """Return the entries of a log by command and pattern, those with the largest sum first."""
    found: dict[tuple[str, bytes, bool], list[LoggedCommand]] = {}
    for entry in entries:
        key = first_key(entry)
        pattern = b"" if key is None else folding.pattern(key)
        found.setdefault((entry.name, pattern, entry.is_own), []).append(entry)
    groups = [LoggedGroup(command, pattern, tuple(some), own) for (command, pattern, own), some in found.items()]
    return tuple(sorted(groups, key=lambda one: -one.total))
