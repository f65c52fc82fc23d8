"""What expires when: the timelines and cliffs of the namespaces with most keys that expire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rtui.analysis.cliffs import FALSE_ALARMS, find_cliffs
from rtui.analysis.expiry_bins import ExpiryBins, ExpiryScale
from rtui.analysis.figures import Figures
from rtui.analysis.pattern_tree import Pattern
from rtui.analysis.report import Cliff, ExpiryReport, Timeline
from rtui.analysis.timeline import timeline
from rtui.keyspace.display import display
from rtui.keyspace.slices import Slicer, Slices

MOST_TIMELINES = 12
"""So many namespaces get a timeline, besides the whole keyspace."""

FEWEST = 2
"""A namespace in which fewer keys expire gets none."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A namespace and how many of its keys expire."""

    path: tuple[Pattern, ...]
    expiring: int


def expiry_report(root: Pattern, figures: Figures, scale: ExpiryScale, slicer: Slicer) -> Slices[ExpiryReport]:
    """Say what expires when below the namespaces that have most of it."""
    places: list[_Place] = []
    everything = yield from _find(root, (), places, slicer)
    places.sort(key=lambda place: (-place.expiring, [(one.name, one.separator) for one in place.path]))
    timelines, cliffs = [], []
    for place in [_Place((), everything), *places[:MOST_TIMELINES]] if everything else []:
        pattern = place.path[-1] if place.path else root
        bins = ExpiryBins(scale)
        for part in _expiries(pattern):
            bins.merge(part)
            if slicer.over():
                yield
        names, label = tuple(one.name for one in place.path), _label(place.path)
        timelines.append(Timeline(names, label, timeline(bins, keys=lambda one: figures.keys(one.keys))))
        cliffs += find_cliffs(bins, keys=pattern.keys, path=names, label=label)
        if slicer.over():
            yield
    alarms = FALSE_ALARMS * len(timelines)
    return ExpiryReport(tuple(timelines), tuple(sorted(most_specific(cliffs), key=_most_first)), alarms)


def most_specific(cliffs: list[Cliff]) -> list[Cliff]:
    """Leave out the cliffs of which a namespace below has most of the keys."""
    return [
        cliff
        for cliff in cliffs
        if not any(
            len(other.path) > len(cliff.path)
            and other.path[: len(cliff.path)] == cliff.path
            and other.start_s < cliff.end_s
            and cliff.start_s < other.end_s
            and 2 * _keys(other) > _keys(cliff)
            for other in cliffs
        )
    ]


def _find(pattern: Pattern, path: tuple[Pattern, ...], places: list[_Place], slicer: Slicer) -> Slices[int]:
    """Note the namespaces below that have a part of a pattern's keys that expire; returns how many it has."""
    parts = [cell.tally.life for cell in pattern.cells.values()]
    total = sum(life.expiries.total for life in parts if life is not None and life.expiries is not None)
    below = []
    for child in pattern.children.values():
        here = (*path, child)
        expiring = yield from _find(child, here, places, slicer)
        total += expiring
        below.append(_Place(here, expiring))
    places += [place for place in below if FEWEST <= place.expiring < total]
    if slicer.over():
        yield
    return total


def _expiries(pattern: Pattern) -> Iterator[ExpiryBins]:
    for one in pattern.walk():
        for cell in one.cells.values():
            life = cell.tally.life
            if life is not None and life.expiries is not None:
                yield life.expiries


def _label(path: tuple[Pattern, ...]) -> str:
    """Show a namespace: `shop:session`."""
    if not path:
        return "all keys"
    return display(b"".join(one.name + one.separator for one in path[:-1]) + path[-1].name)


def _keys(cliff: Cliff) -> float:
    return cliff.keys if isinstance(cliff.keys, (int, float)) else cliff.keys.value


def _most_first(cliff: Cliff) -> tuple[float, float]:
    return -_keys(cliff), cliff.start_s
