"""The Big keys panel: the largest keys of all types or of one, by bytes or by length, marked by thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from rtui.analysis.aggregate import presets
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.keys import SizeMeasure, above_thresholds, big_keys, longer_keys, looked_at
from rtui.analysis.report.tables.table import Table
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import Panel, PanelState, PanelTable, panel_command, sample_note, unfound
from rtui.tui.kit.layout import display, display_text
from rtui.tui.kit.panel_view import following
from rtui.tui.kit.styled_text import Line, Role, Span, literal
from rtui.tui.kit.table_rows import Order

TYPE_LIMIT: Final = 16
"""Characters of a type's name in the title of its table."""


@dataclass(frozen=True, slots=True)
class BigKeysState(PanelState):
    """What the user has chosen in the panel."""

    by_length: bool = False
    preset: str | None = None
    """Name of the thresholds that mark rows, None for those of the report."""


LONGER: Final = "There may be longer ones"
"""The warning of a list by length that may lack keys, since not all were asked; the table's note says more."""


class BigKeysPanel(Panel[BigKeysState]):
    """A table for all types and one for each type."""

    id = "big"
    title = literal("Big keys")
    key = "3"
    help = "Show the largest keys, over all and of each type."
    initial = BigKeysState()
    commands = (
        panel_command(
            lambda _report, state, _size: replace(state, by_length=not state.by_length, table_id="", subject=None),
            "measure", "M", "Measure", "List the largest keys by bytes, or by length.", footer=4,
        ),
        panel_command(
            lambda report, state, _size: replace(
                state, preset=following(presets.names(), preset_name(report, state))
            ),
            "preset", "T", "Limits", "Mark what is above other thresholds, those of various clouds and tools.",
            footer=6,
        ),
    )  # fmt: skip

    def tables(self, report: Report, state: BigKeysState) -> tuple[PanelTable, ...]:
        """Return the tables by the chosen measure."""
        big = report.summary.big
        by_type = big.by_type_length if state.by_length else big.by_type_memory
        by: SizeMeasure = "length" if state.by_length else "memory"
        name = preset_name(report, state)
        thresholds = presets.preset(name)
        sampled = looked_at(report)
        note: Line = (
            Span(literal("by length") if state.by_length else literal("by bytes")),
            Span(literal(" · ▸ above the thresholds of "), Role.MUTED),
            Span(SafeText(name), Role.ACCENT),
            Span(SafeText(f": {thresholds.title}"), Role.MUTED),
        )
        lists = [
            PanelTable(
                f"big {by} {'' if key_type is None else key_type!r}",
                literal("all types") if key_type is None else display(key_type, limit=TYPE_LIMIT),
                partial(big_keys, report, by, key_type),
                partial(_is_big, thresholds),
                (*sample_note(sampled or (LONGER if state.by_length and longer_keys(report, key_type) else "")), *note),
                Order(by),
                needs=(by,),
                top=literal("longest" if state.by_length else "largest"),
            )
            for key_type in (None, *by_type)
        ]
        return *lists, _above(report, sampled)


def _above(report: Report, sampled: str) -> PanelTable:
    """Return the list of how many keys are above the thresholds that they were counted by."""
    name = report.head.scope.preset
    thresholds = presets.preset(name if name in presets.names() else presets.DEFAULT_PRESET)

    def limits(key_type: bytes) -> tuple[int | None, int | None]:
        found = thresholds.limits(key_type)
        return found.length, found.memory_bytes

    note = (*sample_note(sampled), Span(literal("the thresholds are those of "), Role.MUTED))
    return PanelTable(
        "big thresholds",
        literal("above limits"),
        partial(above_thresholds, report, limits),
        note=(*note, Span(display_text(name, limit=TYPE_LIMIT), Role.ACCENT)),
        order=Order("keys"),
        empty=unfound(report, "No key is above the limits"),
    )


def preset_name(report: Report, state: BigKeysState) -> str:
    """Return the name of the thresholds in use: those chosen, else those of the report, else the default."""
    name = state.preset or report.head.scope.preset
    return name if name in presets.names() else presets.DEFAULT_PRESET


def _is_big(thresholds: presets.Preset, table: Table, row: int) -> bool:
    """Whether the key of a row is above a threshold of its type."""
    key_type, memory, length = (table.rows[row][table.column(name)] for name in ("type", "memory", "length"))
    return thresholds.is_big(
        key_type if isinstance(key_type, bytes) else None,
        memory if isinstance(memory, int) else None,
        length if isinstance(length, int) else None,
    )
