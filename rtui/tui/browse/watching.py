"""Watching a key, or the keys in view below an open namespace: when to ask again, what has changed, and how fast.

A refresh is a handful of commands: the facts of a key and the page of its value that is shown, or type, TTL and memory
of the keys on the screen. The time from question to answer bounds what the server spent on it. So a refresh that took
3 ms is repeated after 3 s, which keeps rtui below a thousandth of the server's time, and never more often than every
`LEAST_S`; over a slow link, where most of that time is the network's, it is every `MOST_S`.

Rates are taken over the last few refreshes. What has changed since the last one is marked until the clock ticks next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import KeyFacts, RowFacts
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.row_facts import MOST_NAME_BYTES
from rtui.tui.kit.layout import display
from rtui.tui.kit.styled_text import literal

LEAST_S: Final = 2.0
MOST_S: Final = 10.0
"""Seconds between two refreshes."""

TIME_SHARE: Final = 0.001
"""Of the server's time a watch takes no more than this."""

FLASH_S: Final = 0.9
"""Seconds that changes stay marked: until the screen next looks at the clock."""

RATED: Final = 5
"""Refreshes that a rate is taken over."""

EXPIRY_SLACK_S: Final = 1.5
"""A change of the expiry by this much means another time to live; less is the clocks' rounding."""

NAME_CELLS: Final = 24

REFUSED: Final = literal(
    "Its count comes from a scan (SCAN MATCH walks the whole keyspace), too much to be repeated every few seconds. "
    "Open it to watch the keys that are in view; R scans again."
)
"""Why a closed namespace is not watched."""


NOTHING: Final = literal("")


@dataclass(frozen=True, slots=True)
class FactChange:
    """A change of a fact: its rate, and for a moment the mark that it has just changed."""

    rate: SafeText = NOTHING
    """Such as `+12/s`; empty where it does not move."""
    mark: SafeText = NOTHING
    """`▲`, `▼` or `•` where it has just changed; empty else."""


FactChanges = Mapping[str, FactChange]
"""By the label of the fact."""

UNCHANGED: Final[FactChanges] = {}


class Watcher:
    """What is watched, if anything. All times but the durations of refreshes are seconds since the epoch."""

    def __init__(self) -> None:
        self.key: bytes | None = None
        """The key that is watched."""
        self.node: Namespace | None = None
        """The namespace whose keys in view are watched."""
        self.pace_s = LEAST_S
        self.changes: dict[str, FactChange] = {}
        """Of the key that is watched."""
        self._due_at_s = self._marked_at_s = 0.0
        self._seen: deque[KeyFacts] = deque(maxlen=RATED)
        self._rows: dict[bytes, RowFacts] = {}

    @property
    def is_on(self) -> bool:
        """Whether anything is watched."""
        return self.key is not None or self.node is not None

    def watch_key(self, key: bytes, facts: KeyFacts | None, now_s: float) -> None:
        """Watch a key, of which this is known."""
        self.stop()
        self.key, self._due_at_s = key, now_s
        if facts is not None:
            self._seen.append(facts)

    def watch_rows(self, node: Namespace, now_s: float) -> None:
        """Watch the keys in view below an open namespace."""
        self.stop()
        self.node, self._due_at_s = node, now_s

    def stop(self) -> None:
        """Watch nothing."""
        self.key = self.node = None
        self.pace_s = LEAST_S
        self.changes = {}
        self._seen.clear()
        self._rows = {}

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time for a refresh."""
        return self.is_on and now_s >= self._due_at_s

    def begin(self, now_s: float) -> None:
        """Begin a refresh: the next one comes after the pace, also if this one fails."""
        self._due_at_s = now_s + self.pace_s

    def end(self, now_s: float, took_s: float) -> None:
        """End a refresh; `took_s` is the time from question to answer."""
        self.pace_s = min(MOST_S, max(LEAST_S, took_s / TIME_SHARE))
        self._due_at_s = now_s + self.pace_s
        self._marked_at_s = now_s

    def settle(self, now_s: float) -> bool:
        """Mark nothing any more once marks were there for `FLASH_S`, and return True then; rates stay."""
        if now_s - self._marked_at_s < FLASH_S:
            return False
        self.changes = {label: FactChange(change.rate) for label, change in self.changes.items() if change.rate}
        return True

    def learn(self, facts: KeyFacts) -> bool:
        """Compare newer facts of the key with those before; return whether they are newer."""
        before = self._seen[-1] if self._seen else None
        if before is not None and (facts is before or facts.asked_at_s <= before.asked_at_s):
            return False
        if before is None or before.is_gone or facts.is_gone or before.type != facts.type:
            self._seen.clear()
        self._seen.append(facts)
        self.changes = {} if before is None else dict(self._compared(before, facts))
        return True

    def learn_rows(self, found: Iterable[RowFacts]) -> set[bytes]:
        """Compare newer facts of rows with those before; return the keys that have changed."""
        changed = set()
        for facts in found:
            before = self._rows.get(facts.key)
            if before is not None and _differ(before, facts):
                changed.add(facts.key)
            self._rows[facts.key] = facts
        return changed

    def keys_in(self, rows: Iterable[Row]) -> list[bytes]:
        """Return the keys among some rows that lie below the namespace that is watched; forget other rows."""
        of_keys = (row for row in rows if row.kind is RowKind.KEY)
        names = (row.key() for row in of_keys if any(node is self.node for node in row.namespace.upwards()))
        keys = [key for key in names if len(key) <= MOST_NAME_BYTES]
        wanted = set(keys)
        self._rows = {key: facts for key, facts in self._rows.items() if key in wanted}
        return keys

    def text(self, *, is_online: bool) -> SafeText:
        """Return what is watched, how often, and how fast it changes; empty for nothing."""
        if not self.is_on:
            return SafeText("")
        name = self.key if self.key is not None else b"" if self.node is None else self.node.path()
        shown = (
            display(name, limit=NAME_CELLS) if name else literal("(empty name)" if self.node is None else "all keys")
        )
        what = shown if self.node is None else SafeText(f"keys in view of {shown}")
        if not is_online:
            return SafeText(f"watching {what} when the connection is back")
        rates = [f" · {label} {change.rate}" for label, change in self.changes.items() if change.rate]
        return SafeText(f"watching {what} every {self.pace_s:.0f} s{''.join(rates)}")

    def _compared(self, before: KeyFacts, now: KeyFacts) -> Iterable[tuple[str, FactChange]]:
        """Yield the facts that have changed or have a rate."""
        if now.is_gone or before.is_gone:
            return
        for label, name in (("length", "length"), ("memory", "memory_bytes")):
            old, new = getattr(before, name), getattr(now, name)
            if isinstance(old, int) and isinstance(new, int):
                mark = "" if old == new else "▲" if new > old else "▼"
                rate = _rate(self._seen, name)
                if mark or rate:
                    yield label, FactChange(rate, SafeText(mark))
        for label, name in (("type", "type"), ("encoding", "encoding")):
            if getattr(before, name) != getattr(now, name):
                yield label, FactChange(mark=literal("•"))
        if _has_other_expiry(before, now):
            yield "TTL", FactChange(mark=literal("•"))
        if isinstance(before.idle_s, int) and isinstance(now.idle_s, int) and now.idle_s < before.idle_s:
            yield "idle", FactChange(mark=literal("•"))


def _rate(seen: Sequence[KeyFacts], name: str) -> SafeText:
    """Return how fast a number has changed over some refreshes, `+12/s`, `-3/min`; empty where it has not."""
    known = [(facts.asked_at_s, value) for facts in seen if isinstance(value := getattr(facts, name), int)]
    if len(known) < 2 or known[-1][0] <= known[0][0] or known[-1][1] == known[0][1]:
        return SafeText("")
    per_s = (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])
    sign = "+" if per_s > 0 else "-"
    if name == "memory_bytes":
        return SafeText(f"{sign}{humanize.size(abs(per_s))}/s")
    return SafeText(f"{sign}{humanize.rate(abs(per_s) * 60)}")


def _has_other_expiry(before: KeyFacts | RowFacts, now: KeyFacts | RowFacts) -> bool:
    old, new = before.expires_at_s, now.expires_at_s
    if old is None or new is None:
        return (old is None) is not (new is None)
    return abs(old - new) > EXPIRY_SLACK_S


def _differ(before: RowFacts, now: RowFacts) -> bool:
    facts_before, facts_now = ((one.type, one.memory_bytes, one.is_gone) for one in (before, now))
    return facts_before != facts_now or (not now.is_gone and _has_other_expiry(before, now))
