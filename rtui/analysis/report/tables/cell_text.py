"""Cells as text: `1,204`, `≥ 1,204`, `≈ 1.20k (1.10–1.30k)`, `–`, `denied`.

In this order: exact, at least, estimated with its 95 % interval, unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate
from rtui.analysis.facts import NoTtl, Reason, Unknown
from rtui.analysis.humanize import Mark
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Unit
from rtui.keyspace.text.display import Display, SafeText

EMPTY_NAME: Final = SafeText("(empty)")
"""Stands for a name of no bytes."""

NAMES_IN_A_MIX: Final = 3
"""Names of a mix that are shown; the rest is a number."""

_DISPLAY: Final = Display()
_SPELLED: Final[dict[Unit, Callable[[float, Mark], SafeText]]] = {
    Unit.BYTES: humanize.size,
    Unit.SHARE: humanize.share,
    Unit.RATIO: humanize.ratio,
    Unit.NUMBER: lambda value, mark: SafeText(f"{mark}{value:.0f}"),
    Unit.DURATION: humanize.seconds,
    Unit.TIME: lambda value, mark: SafeText(mark + humanize.moment(value)),
}
_ASCII_MARKS: Final = str.maketrans({"≥": ">=", "≈": "~", "–": "-", "×": "x", "…": "...", "∞": "any"})


def cell_text(cell: Cell, column: Column, display: Display = _DISPLAY) -> SafeText:
    """Return a cell as people read it, in one line; with an ASCII `display`, in ASCII."""
    if isinstance(cell, bytes):
        return display.name(cell) if cell else EMPTY_NAME
    if isinstance(cell, str):
        return display.text(cell)
    text = _mix(cell, display) if isinstance(cell, tuple) else _figure(cell, column.unit)
    return SafeText(text.translate(_ASCII_MARKS)) if display.ascii_only else text


def noun_of(figure: float | Estimate, singular: str) -> str:
    """Return the noun behind a figure: singular behind an exact 1 only, since an estimate may be of more."""
    return humanize.noun(0 if isinstance(figure, Estimate) else figure, singular)


def written(figure: Figure, spell: humanize.NumberFormat, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a figure outside of a table: an estimate with its interval, another number with `mark`."""
    return humanize.estimated(figure, spell) if isinstance(figure, Estimate) else spell(figure, mark)


def written_keys(figure: Figure, mark: Mark = Mark.EXACT) -> SafeText:
    """Return a number of keys outside of a table, whole: an estimate with its interval, another number with `mark`."""
    if isinstance(figure, Estimate):
        return humanize.estimated_keys(figure)
    return humanize.count(round(figure), mark)


def cell_interval(cell: Cell, column: Column, display: Display = _DISPLAY) -> SafeText | None:
    """Return the 95 % interval of an estimate: `1.10–1.30k`; None where the cell is none."""
    if not isinstance(cell, Estimate):
        return None
    text = humanize.interval(cell, _speller(column.unit))
    return SafeText(text.translate(_ASCII_MARKS) if display.ascii_only else text)


def cell_reason(cell: Cell) -> SafeText:
    """Return why there is no value, a safe sentence without a full stop; empty where there is one."""
    if not isinstance(cell, Unknown):
        return SafeText("")
    return SafeText(f"{cell.reason}: {cell.detail}" if cell.detail else cell.reason)


def number_text(value: float, unit: Unit, mark: Mark, *, short: bool = False) -> SafeText:
    """Return a number in its unit; `short` rounds counts to two or three figures."""
    spell = _SPELLED.get(unit)
    if spell is not None:
        return spell(value, mark)
    if short and value >= humanize.SHORT_FROM:
        return humanize.short_count(value, mark)
    return humanize.decimal(value, mark)


def _speller(unit: Unit) -> humanize.NumberFormat:
    """Return what writes the ends of an estimate; of keys there are only whole ones."""
    return humanize.short_count if unit is Unit.KEYS else partial(_short_text, unit=unit)


def _short_text(value: float, mark: Mark, *, unit: Unit) -> SafeText:
    return number_text(value, unit, mark, short=True)


def _figure(cell: float | Estimate | AtLeast | NoTtl | Unknown | None, unit: Unit) -> SafeText:
    """Return a figure, or what stands in its place."""
    if cell is None:
        return humanize.NOTHING
    if isinstance(cell, Unknown):
        return SafeText("denied") if cell.reason is Reason.DENIED else humanize.NOTHING
    if isinstance(cell, NoTtl):
        return SafeText(cell.value)
    if isinstance(cell, Estimate):
        return humanize.estimated(cell, _speller(unit))
    if isinstance(cell, AtLeast):
        return number_text(cell.value, unit, Mark.AT_LEAST)
    return number_text(cell, unit, Mark.EXACT)


def _mix(cell: tuple[tuple[bytes, int | float | Estimate], ...], display: Display) -> SafeText:
    """Return names with their figures: `hash 150k, set 100k`; a single name needs none."""
    if len(cell) == 1:
        return display.name(cell[0][0], limit=64) or EMPTY_NAME
    parts = []
    for name, figure in cell[:NAMES_IN_A_MIX]:
        text = humanize.estimated_keys(figure) if isinstance(figure, Estimate) else humanize.short_count(figure)
        parts.append(f"{display.name(name, limit=64) or EMPTY_NAME} {text}")
    if len(cell) > NAMES_IN_A_MIX:
        parts.append(f"{len(cell) - NAMES_IN_A_MIX} more")
    return SafeText(", ".join(parts)) if parts else humanize.NOTHING
