"""Makes the lines of a panel: a field of INFO, a figure computed from several, a counter as a rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.fields import FIELDS
from rtui.analysis.health.panel import Line
from rtui.analysis.health.possible import NEVER, range_of
from rtui.analysis.health.rates import Span, number
from rtui.analysis.health.sample import Sample, Source
from rtui.analysis.health.view import MOST_HISTORY, HealthView
from rtui.analysis.report.tables.table import Cell, Column, Unit, cell_text
from rtui.keyspace.text.display import Display, SafeText
from rtui.registry.rules import RULES

ONE_SAMPLE: Final = Unknown(Reason.NOT_ASKED, "a rate takes two samples")
RESTARTED: Final = Unknown(
    Reason.NOT_ASKED, "the server was restarted or its statistics were reset since the last sample"
)
NOT_YET: Final = Unknown(Reason.UNSUPPORTED, "the server does not know it yet")
NO_READS: Final = Unknown(Reason.UNSUPPORTED, "nobody has read a key meanwhile")


@dataclass(frozen=True, slots=True)
class About:
    """What a line says beside its value."""

    said: str = ""
    """Safe text."""
    normal: str = ""
    rule: str = ""
    """What to do and where the threshold comes from are taken from its declaration."""


PLAIN: Final = About()


@dataclass(frozen=True, slots=True)
class Lines:
    """Makes lines of the figures of one section of INFO."""

    view: HealthView
    source: Source

    def gauge(self, name: str, title: str, unit: Unit, about: About = PLAIN) -> Line:
        """Return a field of INFO as it is now; -1 where that means never is said in words."""
        value = self.view.cell(name, self.source)
        if value == NEVER and range_of(FIELDS[name]).low == NEVER:
            value = "never" if unit is Unit.DURATION else NOT_YET
        return self.given(name, title, unit, value, about, history=lambda one: _from_0(number(one, name)))

    def computed(
        self,
        line_id: str,
        title: str,
        unit: Unit,
        of: Callable[[Sample], float | None],
        about: About = PLAIN,
        *,
        fields: tuple[str, ...] = (),
    ) -> Line:
        """Return a figure that is computed from these fields of a sample."""
        value = of(self.view.latest)
        unknown = self.view.unknown(self.source, *fields)
        return self.given(line_id, title, unit, unknown if value is None else value, about, history=of)

    def rate(self, line_id: str, title: str, unit: Unit, *counters: str, about: About = PLAIN) -> Line:
        """Return the growth of a counter, or of several together, a second."""
        return self.over_time(
            line_id, title, unit, lambda span: span.rate(*counters), about, counters=counters, is_rate=True
        )

    def over_time(
        self,
        line_id: str,
        title: str,
        unit: Unit,
        of: Callable[[Span], float | None],
        about: About = PLAIN,
        *,
        counters: tuple[str, ...] = (),
        is_rate: bool = False,
        otherwise: Unknown = RESTARTED,
    ) -> Line:
        """Return a figure of the time between the last two samples; `otherwise` is why a known one has no value."""
        history = tuple(of(span) for span in self.view.spans)
        value: Cell = history[-1] if history else ONE_SAMPLE
        if any(self.view.number(name) is None for name in counters):
            value = self.view.unknown(self.source, *counters)
        elif value is None:
            value = otherwise if self.view.spans[-1].is_continuous else RESTARTED
        return _line(line_id, title, unit, value, about, history=history, is_rate=is_rate)

    def given(
        self,
        line_id: str,
        title: str,
        unit: Unit,
        value: Cell,
        about: About = PLAIN,
        *,
        history: Callable[[Sample], float | None] = lambda _sample: None,
    ) -> Line:
        """Return a value that is known otherwise, with its history where it has one."""
        values = self.view.history(history)
        known = any(one is not None for one in values)
        return _line(line_id, title, unit, value, about, history=values if known else ())


def _line(
    line_id: str,
    title: str,
    unit: Unit,
    value: Cell,
    about: About,
    *,
    history: tuple[float | None, ...],
    is_rate: bool = False,
) -> Line:
    rule = RULES.get(about.rule)
    if isinstance(value, int | float):
        value = possible(line_id, unit, value)
    history = tuple(None if one is None else _number_of(possible(line_id, unit, one)) for one in history)
    return Line(
        line_id,
        title,
        value,
        unit,
        is_rate,
        said=SafeText(about.said),
        normal=about.normal,
        remedy=rule.remedy if rule else "",
        source=rule.basis if rule else "",
        rule=about.rule,
        history=history[-MOST_HISTORY:],
    )


def possible(line_id: str, unit: Unit, value: float) -> Cell:
    """Return a figure, or that it can't be: below 0, no number, or a share above all of it.

    A rate over a short time may be a little above what there is, since clocks are read before the counters are.
    """
    most = _MOST.get(line_id, 1.0 if unit is Unit.SHARE else inf)
    if most < value <= most * SLACK:
        return most
    if isfinite(value) and 0 <= value <= most:
        return value
    said = humanize.share(value) if unit is Unit.SHARE and isfinite(value) and value > 0 else f"{value:g}"
    return Unknown(Reason.IMPOSSIBLE, f"the server's figures come to {said}")


SLACK: Final = 1.1
"""So many times all of it counts as all of it."""

_MOST: Final = {"cpu": inf}
"""The most that shares can be which may be above 1: of the time of one core, all threads take more."""


def _number_of(cell: Cell) -> float | None:
    return cell if isinstance(cell, int | float) else None


def _from_0(value: float | None) -> float | None:
    return value if value is None or value >= 0 else None


_DISPLAY: Final = Display()


def value_text(line: Line, value: Cell = None, display: Display = _DISPLAY) -> SafeText:
    """Return the value of a line as people read it, or another of the same kind: `1.20 GiB`, `412/s`, `denied`."""
    shown = line.value if value is None else value
    text = cell_text(shown, Column(line.id, line.title, line.unit), display)
    if isinstance(shown, Unknown) and shown.reason is Reason.IMPOSSIBLE:
        return SafeText(f"{text} ({shown.detail})")
    return SafeText(f"{text}/s") if line.is_rate and isinstance(shown, int | float) else text
