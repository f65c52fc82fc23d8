"""The Big keys panel: the largest keys of all types or of one, by bytes or by length."""

from __future__ import annotations

from functools import partial
from typing import Final

from rtui.analysis.aggregate import presets
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.keys import Measure, big_keys, looked_at
from rtui.analysis.report.tables.table import Cell, Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import Choices, Listing
from rtui.tui.analyse.table_notes import sample_note
from rtui.tui.kit.format import display
from rtui.tui.kit.styled_text import Line, Role, Span, own
from rtui.tui.kit.table_rows import Order

TYPE_LIMIT: Final = 16
"""Characters of a type's name that its title shows."""


def listings(report: Report, choices: Choices) -> tuple[Listing, ...]:
    """Return the lists of all types and of each type, by what is chosen."""
    by_type = report.summary.big.by_type_length if choices.by_length else report.summary.big.by_type_memory
    by: Measure = "length" if choices.by_length else "memory"
    name = preset_name(report, choices)
    note = (*sample_note(looked_at(report)), *_note(name, by_length=choices.by_length))
    kinds: list[bytes | None] = [None, *by_type]
    return tuple(
        Listing(
            f"big {by} {'' if kind is None else kind!r}",
            own("all types") if kind is None else display(kind, limit=TYPE_LIMIT),
            partial(big_keys, report, by, kind),
            partial(is_big, presets.preset(name)),
            note,
            Order(by),
            needs=(by,),
            among=own("longest" if choices.by_length else "largest"),
        )
        for kind in kinds
    )


def preset_name(report: Report, choices: Choices) -> str:
    """Return the name of the thresholds in use: those chosen, or those of the report where it names any we know."""
    name = choices.preset or report.head.scope.preset
    return name if name in presets.names() else presets.DEFAULT_PRESET


def next_preset(report: Report, choices: Choices) -> str:
    """Return the name of the thresholds that come next."""
    names = presets.names()
    return names[(names.index(preset_name(report, choices)) + 1) % len(names)]


def is_big(preset: presets.Preset, table: Table, row: int) -> bool:
    """Whether the key of a row is above a threshold of its type."""

    def cell(name: str) -> Cell:
        return table.rows[row][table.column(name)]

    kind, memory, length = cell("type"), cell("memory"), cell("length")
    return preset.is_big(
        kind if isinstance(kind, bytes) else None,
        memory if isinstance(memory, int) else None,
        length if isinstance(length, int) else None,
    )


def _note(name: str, *, by_length: bool) -> Line:
    """Say by what the keys are listed, and which thresholds mark them."""
    measure = own("by length") if by_length else own("by bytes")
    return (
        Span(measure),
        Span(own(" · ▸ above the thresholds of "), Role.MUTED),
        Span(SafeText(name), Role.ACCENT),
        Span(SafeText(f": {presets.preset(name).title}"), Role.MUTED),
    )
