"""The namespaces around the row under the cursor, from the first level inwards: a title of the tree, to be clicked."""

from __future__ import annotations

from typing import Final, NamedTuple

from rtui.keyspace.rows.rows import Row, VisibleRows
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.layout import MARGIN, display
from rtui.tui.kit.styled_text import ELLIPSIS, joined, literal, width_of

BETWEEN: Final = " › "

NAME_LIMIT: Final = 24
"""Characters of a namespace's name at most."""


class Crumb(NamedTuple):
    """A namespace of the path, with the cells of the header in which it stands."""

    node: Namespace
    start: int
    end: int


def path_around(row: Row | None, rows: VisibleRows) -> list[Namespace]:
    """Return the namespaces that a row is in, the outermost first; none at the first level."""
    node = None if row is None else rows.above(row)
    return [] if node is None else [one for one in node.upwards() if one.parent is not None][::-1]


def title_of(path: list[Namespace], cells: int) -> tuple[SafeText, list[Crumb]]:
    """Return the path as the title of a header, and where it can be clicked; of a long one the end, behind `…`."""
    texts = [display(node.name, limit=NAME_LIMIT) or literal("(empty)") for node in path]
    first = 0
    while first < len(path) - 1 and _width(texts[first:], is_cut=first > 0) > cells:
        first += 1
    start = MARGIN + (len(ELLIPSIS) + len(BETWEEN) if first else 0)
    crumbs = []
    for node, text in zip(path[first:], texts[first:], strict=True):
        crumbs.append(Crumb(node, start, start + width_of(text)))
        start += width_of(text) + len(BETWEEN)
    return joined([*([SafeText(ELLIPSIS)] if first else []), *texts[first:]], BETWEEN), crumbs


def _width(texts: list[SafeText], *, is_cut: bool) -> int:
    return sum(width_of(text) + len(BETWEEN) for text in texts) + (len(ELLIPSIS) if is_cut else -len(BETWEEN))
