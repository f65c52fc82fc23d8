"""The lines of the schema: a row for each level, and how they are divided."""

from __future__ import annotations

from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.humanize import Mark
from rtui.analysis.namespace_figures import Known
from rtui.analysis.report.document import NodeKind
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.columns import ANALYSED_COLUMNS, RowLayout, TreeColumn, lay_out_row
from rtui.tui.browse.schema import Level, Schema
from rtui.tui.browse.tree_lines import (
    CLOSED,
    EMPTY,
    INDENT_CELLS,
    NO_SIGN,
    OPEN,
    KnownCount,
    RowFigures,
    figure_fields,
    indent_cells,
)
from rtui.tui.kit.layout import MARGIN, display
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, joined, left, literal, width_of

COLUMNS: Final = frozenset({TreeColumn.KEYS, TreeColumn.SHARE, TreeColumn.BAR}) | ANALYSED_COLUMNS
"""What a level can show: what a namespace of the tree can, and nothing that only keys have."""

CRUMB_LIMIT: Final = 24
"""Characters of a level's name in the header at most."""


def lay_out_levels(
    width: int, enabled: frozenset[TreeColumn], longest: int, *, is_analysed: bool, sort: Sort
) -> RowLayout:
    """Divide the width among the names of levels and the enabled columns, as many as fit."""
    columns = enabled & (COLUMNS if is_analysed else COLUMNS - ANALYSED_COLUMNS)
    return lay_out_row(width, columns, longest, is_analysed=is_analysed, sort=sort)


def level_line(level: Level, schema: Schema, layout: RowLayout, *, is_outdated: bool = False) -> Line:
    """Return the row of a level in exactly the width of the layout; `is_outdated`: its names are those of before."""
    keys = schema.keys(level)
    known = KnownCount(keys.value, keys.mark)
    is_old = is_outdated or not schema.is_current
    figures = RowFigures(
        known,
        schema.share(level),
        Mark.EXACT if known.mark is Mark.EXACT else Mark.ABOUT,
        None if schema.is_of_names else schema.figures(level),
        is_old,
        is_old,
    )
    sign = NO_SIGN if not level.node.children else OPEN if level.is_open else CLOSED
    indent, many = indent_cells(level.depth, layout.name_cells), times_text(schema.distinct(level))
    room = layout.name_cells - indent - width_of(sign) - 1
    name_room = max(4, room - width_of(many))
    name = cut_middle(level_name(level, max(room, 16)), name_room)
    role = Role.FAINT if not level.node.name else Role.ACCENT if level.is_folded else Role.TEXT
    return (
        Span(SafeText(" " * indent + sign), Role.FAINT),
        Span(name, Role.MUTED if is_old else role),
        Span(left(many, max(0, room + 1 - width_of(name))), Role.MUTED),
        *figure_fields(figures, layout.fields),
    )


def level_name(level: Level, limit: int) -> SafeText:
    """Return the segment of a level, or what it folds to."""
    if level.node.kind is NodeKind.OTHER:
        return fmt.OTHER
    return display(level.node.name, limit=limit) if level.node.name else EMPTY


def times_text(many: Known | None) -> SafeText:
    """Return for how many different segments a level stands: ` ×50,000`, ` ×≈50.2k`; nothing for a name."""
    if many is None:
        return literal("")
    mark = many.mark.strip()
    return SafeText(f" ×{mark}{KnownCount(many.value, many.mark).text.removeprefix(many.mark)}")


def level_cells(level: Level) -> int:
    """Return about how many cells the name of a level takes when nothing of it is cut, with its indent and sign."""
    indent = MARGIN + level.depth * INDENT_CELLS + width_of(NO_SIGN)
    many = 12 if level.is_folded else 0
    return indent + len(level.node.name) + many + 1


def schema_title(level: Level | None, needle: bytes | None, note: SafeText, cells: int) -> SafeText:
    """Return the title over the rows: what they are, the levels that the one under the cursor is in, and a note.

    `needle` is the text that names are filtered by. In a few cells the levels go first, then the note.
    """
    if needle is not None:
        return SafeText(f"Schema of names with {display(needle, limit=40)}")
    above = [] if level is None else [level_name(one, CRUMB_LIMIT) for one in level.upwards() if one.parent is not None]
    whole, bare = joined([literal("Schema"), *above[:0:-1]], " › "), literal("Schema")
    titles = [joined([one, note]) for one in (whole, bare)] if note else [whole]
    return next((one for one in titles if width_of(one) <= cells), bare)
