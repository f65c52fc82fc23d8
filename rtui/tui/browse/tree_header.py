"""The line over the tree: the path to the row under the cursor and the titles of the columns, which can be clicked.

`TreeRows` is the base of the tree of names and of the schema: it runs keys at once, and takes a name to jump to.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from textual import events
from textual.message import Message

from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import Row, VisibleRows
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.tui.browse.columns import RowLayout, lay_out_row, sort_at
from rtui.tui.browse.tree_lines import header_line
from rtui.tui.kit.layout import MARGIN, display
from rtui.tui.kit.line_view import LinePanel, RowsView
from rtui.tui.kit.styled_text import ELLIPSIS, joined, literal, width_of


class TreeRows(RowsView):
    """Rows that take their keys before these bubble, and the characters of a name while one is typed."""

    class SortRequested(Message):
        """The user wants another order of rows: `step` places further in the list, or reversed for 0."""

        def __init__(self, step: int = 0) -> None:
            super().__init__()
            self.step = step

    class Jumping(Message):
        """The beginning of a name that the user is typing, None when that has ended."""

        def __init__(self, typed: str | None) -> None:
            super().__init__()
            self.typed = typed

    _typed: str | None = None

    def action_sort_step(self, step: int) -> None:
        """Sort by the order `step` places further in the list."""
        self.post_message(self.SortRequested(step))

    def action_sort_reverse(self) -> None:
        """Sort the other way round."""
        self.post_message(self.SortRequested())

    def action_jump(self) -> None:
        """Take the next characters as the beginning of a name."""
        self._type("")

    def _type(self, typed: str | None) -> None:
        """Look for a name that begins so; None ends typing."""
        self._typed = typed
        self.post_message(self.Jumping(typed))

    async def on_key(self, event: events.Key) -> None:
        """Run the action of a key; while a name is being typed, take its characters until another key ends that.

        The action is run at once. Otherwise the key would bubble to the application first, one iteration of the event
        loop for each ancestor, and while a scan runs each iteration takes a while.
        """
        if self._typed is None:
            for binding in self._bindings.key_to_bindings.get(event.key, ()):
                await self.run_action(binding.action)
                event.stop()
                event.prevent_default()
            return
        if event.key == "backspace":
            self._type(self._typed[:-1])
        elif event.is_printable and event.character is not None:
            self._type(self._typed + event.character)
        else:
            self._type(None)
            if event.key not in {"escape", "enter"}:
                return
        event.stop()
        event.prevent_default()

    def on_blur(self) -> None:
        """Without the keyboard nothing is typed here."""
        if self._typed is not None:
            self._type(None)


BETWEEN: Final = " › "

NAME_LIMIT: Final = 24
"""Characters of a namespace's name at most."""


class Crumb(NamedTuple):
    """A namespace of the path, with the cells of the header in which it stands."""

    node: Namespace
    start: int
    end: int


class TreeHeader(LinePanel):
    """Shows the path of the cursor or the title of the rows, above the titles of columns."""

    class PathClicked(Message):
        """The user wants to go to a namespace of the path."""

        def __init__(self, node: Namespace) -> None:
            super().__init__()
            self.node = node

    class ColumnClicked(Message):
        """The user wants the rows sorted by a column."""

        def __init__(self, sort: Sort) -> None:
            super().__init__()
            self.sort = sort

    def __init__(self) -> None:
        super().__init__(id="tree-header")
        self._crumbs: list[Crumb] = []
        """The path, if it is shown."""
        self._layout = lay_out_row(0)

    def show_rows(
        self, rows: VisibleRows, cursor: Row | None, layout: RowLayout, *, needle: bytes | None, note: SafeText
    ) -> None:
        """Show the header of rows with the cursor on one of them; `needle` is the text that names are filtered by.

        `note` stands after the path, or in its place if both do not fit.
        """
        self._crumbs, self._layout = [], layout
        if needle is not None:
            title = SafeText(f"Names with {display(needle, limit=40)}")
        elif path := path_around(cursor, rows):
            title, self._crumbs = title_of(path, layout.name_cells - 2 * MARGIN)
        else:
            title = SafeText(f"Namespaces split at {display(b' '.join(rows.store.separators.values))}")
        order = rows.sort_order, rows.is_reversed
        line = header_line(layout, order, title, is_filter=needle is not None, note=note)
        if not line[0].text.startswith(f" {title}"):
            self._crumbs = []
        self.show([line])

    def show_title(self, title: SafeText, layout: RowLayout, order: tuple[Sort, bool], *, is_filter: bool) -> None:
        """Show a title over columns, with the sort order of the rows, and whether it is reversed."""
        self._crumbs, self._layout = [], layout
        self.show([header_line(layout, order, title, is_filter=is_filter)])

    def on_click(self, event: events.Click) -> None:
        """Go to the namespace that is clicked at, or sort by the column."""
        event.stop()
        crumb = next((one for one in self._crumbs if one.start <= event.x < one.end), None)
        sort = sort_at(self._layout, event.x)
        if crumb is not None:
            self.post_message(self.PathClicked(crumb.node))
        elif sort is not None:
            self.post_message(self.ColumnClicked(sort))


def path_around(row: Row | None, rows: VisibleRows) -> list[Namespace]:
    """Return the namespaces that a row is in, the outermost first; none at the first level."""
    node = None if row is None else rows.above(row)
    return [] if node is None else [one for one in node.upwards() if one.parent is not None][::-1]


def title_of(path: list[Namespace], cells: int) -> tuple[SafeText, list[Crumb]]:
    """Return the path as the title of a header, with its clickable parts; a long path is cut at the left, after `…`."""
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
