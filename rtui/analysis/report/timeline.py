"""The expiry timelines of a report, cut into columns of equal width as charts show them."""

from __future__ import annotations

import math

from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import ExpiryBin, Timeline
from rtui.analysis.report.members import Figure


def end_s(whole: Timeline) -> float:
    """Return the end of the last bin in seconds since the epoch; 0 without bins."""
    return whole.bins[-1].start_s + whole.bins[-1].width_s if whole.bins else 0.0


def columns(whole: Timeline, from_s: float, to_s: float, n: int) -> tuple[ExpiryBin, ...]:
    """Cut the time between two moments into n columns of equal width, empty ones too.

    A bin that reaches over a border gives each column the part that lies in it, as if its keys were spread evenly.
    The parts of estimates are taken for independent. Memory is None where it is not known of any bin.
    """
    if n < 1 or to_s <= from_s:
        return ()
    width = (to_s - from_s) / n
    parts: list[list[tuple[ExpiryBin, float]]] = [[] for _ in range(n)]
    for one in whole.bins:
        end = one.start_s + one.width_s
        first = max(0, math.floor((one.start_s - from_s) / width))
        for column in range(first, min(n, math.ceil((end - from_s) / width))):
            begin = from_s + column * width
            overlap = min(end, begin + width) - max(one.start_s, begin)
            if overlap > 0:
                parts[column].append((one, overlap / one.width_s))
    knows_memory = any(one.memory_bytes is not None for one in whole.bins)
    return tuple(
        ExpiryBin(
            start_s=from_s + column * width,
            width_s=width,
            keys=_sum([(one.keys, part) for one, part in inside]),
            memory_bytes=_sum([(one.memory_bytes or 0, part) for one, part in inside]) if knows_memory else None,
        )
        for column, inside in enumerate(parts)
    )


def _sum(parts: list[tuple[Figure, float]]) -> Figure:
    """Add parts of figures: whole numbers as such where nothing is cut, estimates with their intervals."""
    if any(isinstance(figure, Estimate) for figure, _ in parts):
        known = [
            (figure if isinstance(figure, Estimate) else Estimate(figure, figure, figure)).scaled(part)
            for figure, part in parts
        ]
        value = math.fsum(one.value for one in known)
        below = math.hypot(*(one.value - one.low for one in known))
        above = math.hypot(*(one.high - one.value for one in known))
        return Estimate(max(0.0, value - below), value, value + above)
    return sum(figure if part == 1 else figure * part for figure, part in parts if not isinstance(figure, Estimate))
