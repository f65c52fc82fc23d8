"""Entries that ask what a server knows of its load: hot keys, busy slots, and the settings that say what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rtui.server.guard.shape import NO_MATCH, Element, Integer, Samples, Token, token
from rtui.server.guard.spec import MAX_TRACKED_KEYS, Group, Spec

SETTINGS: Final = (b"lfu-log-factor", b"lfu-decay-time")
"""Settings that may be read, one at a time as servers before 7.0 want it: how access counters grow and fall."""

SLOT_ORDERS: Final = (b"key-count", b"cpu-usec")
"""What slots may be ordered by."""

MAX_SLOTS: Final = 100
"""Most slots of one list."""

MAX_SESSION_S: Final = 3600
"""Longest hot-key session."""

MIN_SAMPLE_RATIO: Final = 10
"""A session measures at most one command in so many: measuring each one took a GET from 0.34 to 0.63 µs."""

MAX_SAMPLE_RATIO: Final = 10_000
"""A session that measures fewer sees nothing in its time."""


@dataclass(frozen=True, slots=True)
class _Phrase:
    """One of a few fixed runs of words."""

    runs: tuple[tuple[bytes, ...], ...]

    def take(self, args: Sequence[bytes], at: int) -> int:
        """Take the words of one run."""
        ends = (at + len(run) for run in self.runs if tuple(args[at : at + len(run)]) == run)
        return next(ends, NO_MATCH)

    def words(self) -> str:
        """Say the runs with bars between."""
        return "|".join(b" ".join(run).decode() for run in self.runs)

    def bounds(self) -> tuple[str, ...]:
        """Nothing to bound: the words say it."""
        return ()

    def samples(self, key: bytes) -> Samples:
        """Give each run."""
        return self.runs


_SESSION: Final[tuple[Element, ...]] = (
    token("METRICS"),
    _Phrase(((b"1", b"CPU"), (b"1", b"NET"), (b"2", b"CPU", b"NET"))),
    token("COUNT"),
    Integer("count", 1, MAX_TRACKED_KEYS),
    token("DURATION"),
    Integer("seconds", 1, MAX_SESSION_S),
    token("SAMPLE"),
    Integer("ratio", MIN_SAMPLE_RATIO, MAX_SAMPLE_RATIO),
)

LOAD: Final = (
    Spec(
        (b"HOTKEYS", b"GET"),
        (),
        Group.SERVER,
        "the keys that are kept; 64 by two measures 50 µs",
        "reads what a session has measured, and leaves the session as it is",
        since_redis=(8, 6),
        since_valkey=(9, 2),
        is_optional=True,
    ),
    Spec(
        (b"HOTKEYS", b"START"),
        _SESSION,
        Group.HOTKEYS,
        "0.3 ms to begin, 1.4 MB for its result; until it ends each command of all clients takes 0.07 µs longer",
        "only after the user has agreed; ends by itself, measures a sample, and is never stopped or reset by rtui",
        since_redis=(8, 6),
        since_valkey=None,
        is_optional=True,
        needs_consent=True,
    ),
    Spec(
        (b"CLUSTER", b"SLOT-STATS"),
        (token("ORDERBY"), Token(SLOT_ORDERS), token("LIMIT"), Integer("limit", 1, MAX_SLOTS), token("DESC")),
        Group.CLUSTER,
        "sorts the node's slots; all 16,384 0.7–1.2 ms",
        "counters that the node keeps anyway; asked every few seconds at most",
        since_redis=(8, 2),
        since_valkey=(8, 0),
        is_optional=True,
    ),
    Spec(
        (b"CONFIG", b"GET"),
        (Token(SETTINGS),),
        Group.SETTINGS,
        "one look-up; 0.4–2 µs",
        "two settings by their names, never a pattern; other settings hold passwords",
        since_redis=(2, 0),
        is_optional=True,
    ),
)
"""What a server knows of its load."""
