"""What expires when: the timelines and cliffs of the namespaces with most keys that expire."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rtui.analysis.cliffs import FALSE_ALARMS, find_cliffs
from rtui.analysis.expiry_bins import ExpiryBins, ExpiryScale
from rtui.analysis.figures import Figures, memory_of
from rtui.analysis.pattern_tree import Pattern
from rtui.analysis.report import Cliff, ExpiryReport, Timeline
from rtui.analysis.tables.namespaces import namespace_cell
from rtui.analysis.tables.place import Step
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
        bins, largest = ExpiryBins(scale), 0
        for tally in pattern.tallies():
            if tally.life is not None and tally.life.expiries is not None:
                bins.merge(tally.life.expiries)
                largest = max(largest, 0 if tally.memory is None else tally.memory.max)
            if slicer.over():
                yield
        names, label = tuple(one.name for one in place.path), _label(place.path)
        memory = partial(memory_of, figures=figures, largest=largest)
        columns = timeline(bins, keys=lambda one: figures.keys(one.keys), memory_bytes=memory)
        timelines.append(Timeline(names, label, columns))
        if slicer.over():
            yield
        cliffs += find_cliffs(bins, keys=pattern.keys, path=names, label=label, figures=figures, largest=largest)
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
    parts = [tally.life for tally in pattern.own()]
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


def _label(path: tuple[Pattern, ...]) -> str:
    """Show a namespace as tables do: `shop:session:`."""
    if not path:
        return "all keys"
    shown = namespace_cell([Step(one.name, one.separator, one.kind) for one in path])
    return shown if isinstance(shown, str) else display(shown)


def _keys(cliff: Cliff) -> float:
    return cliff.keys if isinstance(cliff.keys, (int, float)) else cliff.keys.value


def _most_first(cliff: Cliff) -> tuple[float, float]:
    return -_keys(cliff), cliff.start_s
