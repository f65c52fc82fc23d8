"""The line over the tree: what its places show and how it is sorted."""

from __future__ import annotations

from rtui.keyspace.display import SafeText
from rtui.keyspace.ordering import Sort
from rtui.tui.columns import GAP_CELLS, Column, Plan
from rtui.tui.ink import Line, Role, Span, left, right


def header_line(plan: Plan, order: Sort, title: SafeText, *, is_filter: bool = False) -> Line:
    """Return the header in exactly the width of the plan; the column that orders the rows is marked."""
    by_name = order is Sort.NAME
    name = SafeText(f" {title}{' ↓' if by_name else ''}")
    spans = [Span(left(name, plan.name_cells), Role.ACCENT if by_name or is_filter else Role.MUTED)]
    for place in plan.places:
        by_count = order is Sort.COUNT and place.namespace is Column.KEYS
        text = SafeText(place.title.replace(Column.KEYS, f"{Column.KEYS} ↓", 1) if by_count else place.title)
        spans.append(Span(right(text, place.cells + GAP_CELLS), Role.ACCENT if by_count else Role.MUTED))
    return tuple(spans)
