"""The samples of one server in order, and what is known of its keys: all that panels and rules go by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import Final

from msgspec.structs import replace as with_fields

from rtui.analysis.facts import NOT_ASKED, Reason, Unknown
from rtui.analysis.health.rates import Span, number
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.table import Cell
from rtui.registry.registry import Registry
from rtui.registry.rules import RuleLevels

MOST_HISTORY: Final = 240
"""Values of a figure that are shown over time: the latest."""

TREND_S: Final = 60.0
"""A trend is not computed from a shorter time than this."""

_TREND_SAMPLES: Final = 6


@dataclass(frozen=True)
class HealthView:
    """One server."""

    samples: tuple[Sample, ...]
    """Of one node, oldest first; at least one."""
    report: Report | None = None
    """Of its keyspace."""
    registry: Registry | None = None
    levels: RuleLevels = field(default_factory=RuleLevels)
    """Severities and parameters of the rules."""

    @property
    def latest(self) -> Sample:
        """The last sample."""
        return self.samples[-1]

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The times between samples, of the last ones."""
        return tuple(Span(*pair) for pair in pairwise(self.samples[-MOST_HISTORY - 1 :]))

    @property
    def last(self) -> Span | None:
        """The time between the last two samples; None where there is one sample only."""
        return self.spans[-1] if self.spans else None

    @cached_property
    def session(self) -> Span | None:
        """The longest time up to now in which the counters went on; None where there was none."""
        first = None
        for span in reversed(self.spans):
            if not span.is_continuous:
                break
            first = span.before
        return None if first is None else Span(first, self.latest)

    def number(self, name: str) -> float | None:
        """Return a field of INFO that is a number; None where there is none."""
        return number(self.latest, name)

    def text(self, name: str) -> str:
        """Return a field of INFO that is a text, or a number as one; empty where there is none."""
        return str(self.latest.info.get(name, ""))

    def cell(self, name: str, source: Source) -> Cell:
        """Return a field of INFO, or why the source of it does not tell it."""
        found = self.latest.info.get(name)
        return self.unknown(source, name) if found is None else found

    def unknown(self, source: Source, *names: str) -> Unknown:
        """Return why a source says nothing, or not all: what it says of the first of some fields that can't be."""
        for name in names:
            if (why := self.latest.why_impossible(name)) is not None:
                return why
        missing = self.latest.missing.get(source)
        if missing is not None:
            return Unknown(missing.reason, missing.detail)
        if source in self.latest.sources:
            return Unknown(Reason.UNSUPPORTED, "this server does not tell it")
        return NOT_ASKED

    def told(self, source: Source) -> Sample | None:
        """Return the last sample if it has figures of a source; None where it has said nothing, or nothing any more.

        What is costly is asked less often, and logs are read when they have something new: the last sample repeats
        what was said before, in which clients are no longer kept.
        """
        for sample in reversed(self.samples):
            if source in sample.sources:
                return self.latest
            if source in sample.missing:
                return None
        return None

    def last_alone(self) -> HealthView:
        """Return the view of the last sample without those before, but with all that was said by then."""
        told = tuple(source for source in Source if self.told(source) is not None)
        missing = {
            source: why for sample in self.samples for source, why in sample.missing.items() if source not in told
        }
        return replace(self, samples=(with_fields(self.latest, sources=told, missing=missing),))

    def between(self, source: Source) -> Span | None:
        """Return the time of the session between the first and the last figures of a source; None for less than two."""
        if self.session is None:
            return None
        start = self.samples.index(self.session.before)
        told = [one for one in self.samples[start:] if source in one.sources]
        return Span(told[0], told[-1]) if len(told) > 1 else None

    def setting(self, name: str) -> str | None:
        """Return a value of CONFIG GET; None where it is not known."""
        told = self.told(Source.SETTINGS)
        return None if told is None else told.settings.get(name)

    def history(self, value: Callable[[Sample], float | None]) -> tuple[float | None, ...]:
        """Return a figure in the last samples, oldest first."""
        return tuple(value(sample) for sample in self.samples[-MOST_HISTORY:])

    def trend(self, name: str) -> float | None:
        """Return by how much a field has grown a second, negative where it shrank; None where that can't be told.

        The mean of the last third of the samples since the server was started is compared with that of the first.
        """
        run = [self.latest]
        for span in reversed(self.spans):
            if not span.is_same_run:
                break
            run.append(span.before)
        known = [(one.at_ms / 1000, value) for one in reversed(run) if (value := number(one, name)) is not None]
        if len(known) < _TREND_SAMPLES or known[-1][0] - known[0][0] < TREND_S:
            return None
        third = len(known) // 3
        (start_s, first), (end_s, last) = (
            map(fmean, zip(*part, strict=True)) for part in (known[:third], known[-third:])
        )
        return (last - first) / (end_s - start_s) if end_s > start_s else None
