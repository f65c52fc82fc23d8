"""What expires when: a part of the report, and how its timelines are cut into columns as charts show them."""

from __future__ import annotations

import math

from msgspec import Struct, field

from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.report.members import Figure, Name, Number, Text


class ExpiryBin(Struct, frozen=True, gc=False):
    """Keys that expire within a range of absolute time."""

    start_s: Number
    """Seconds since the epoch."""
    width_s: Number
    keys: Figure
    memory_bytes: Figure | None


class Timeline(Struct, frozen=True, gc=False):
    """Coming expiries of the keys below one namespace, soonest first, empty bins left out."""

    path: tuple[Name, ...]
    """Segment names from the first level on; empty for the whole keyspace."""
    label: Text
    """The path as it is shown."""
    bins: tuple[ExpiryBin, ...]

    @property
    def end_s(self) -> float:
        """The end of the last bin in seconds since the epoch; 0 without bins."""
        return self.bins[-1].start_s + self.bins[-1].width_s if self.bins else 0.0

    def columns(self, from_s: float, to_s: float, n: int) -> tuple[ExpiryBin, ...]:
        """Cut the time between two moments into n columns of equal width, empty ones too.

        A bin that reaches over a border gives each column the part that lies in it, as if its keys were spread evenly.
        The parts of estimates are taken for independent. Memory is None where it is not known of any bin.
        """
        if n < 1 or to_s <= from_s:
            return ()
        width = (to_s - from_s) / n
        parts: list[list[tuple[ExpiryBin, float]]] = [[] for _ in range(n)]
        for one in self.bins:
            end = one.start_s + one.width_s
            first = max(0, math.floor((one.start_s - from_s) / width))
            for column in range(first, min(n, math.ceil((end - from_s) / width))):
                begin = from_s + column * width
                overlap = min(end, begin + width) - max(one.start_s, begin)
                if overlap > 0:
                    parts[column].append((one, overlap / one.width_s))
        knows_memory = any(one.memory_bytes is not None for one in self.bins)
        return tuple(
            ExpiryBin(
                start_s=from_s + column * width,
                width_s=width,
                keys=_sum([(one.keys, part) for one, part in inside]),
                memory_bytes=_sum([(one.memory_bytes or 0, part) for one, part in inside]) if knows_memory else None,
            )
            for column, inside in enumerate(parts)
        )


class Cliff(Struct, frozen=True, gc=False):
    """A range of time in which far more keys of a namespace expire than around it."""

    path: tuple[Name, ...]
    label: Text
    """The namespace as it is shown: `shop:session`, `all keys`."""
    start_s: Number
    end_s: Number
    """Both in seconds since the epoch."""
    keys: Figure
    share: Figure = field(name="share_of_namespace")
    """Of all keys of the namespace, 0 … 1."""
    memory_bytes: Figure | None
    expected_keys: Figure
    """Keys that would expire in that range if it were like the ranges around it."""


class ExpiryReport(Struct, frozen=True, gc=False):
    """What expires when. What does not expire is in the stats of the namespaces."""

    timelines: tuple[Timeline, ...] = ()
    """The whole keyspace first, then the namespaces with most keys that expire."""
    cliffs: tuple[Cliff, ...] = ()
    """Most keys first."""
    false_alarms: Number = field(default=0.0, name="expected_false_alarms")
    """How many cliffs a keyspace of even expiries is expected to show by chance."""


def _sum(parts: list[tuple[Figure, float]]) -> Figure:
    """Add parts of figures: whole numbers as such where nothing is cut, estimates with their intervals."""
    if any(isinstance(figure, Estimate) for figure, _ in parts):
        known = [as_estimate(figure).scaled(part) for figure, part in parts]
        value = math.fsum(one.value for one in known)
        below = math.hypot(*(one.value - one.low for one in known))
        above = math.hypot(*(one.high - one.value for one in known))
        return Estimate(max(0.0, value - below), value, value + above)
    return sum(figure if part == 1 else figure * part for figure, part in parts if not isinstance(figure, Estimate))
