"""The schema in the place of a tree of names: shown and hidden, in step with reports, names, filters and sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rtui.analysis import humanize as fmt
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.tui.browse.key_tree import KeyTree
from rtui.tui.browse.schema_view import SchemaView
from rtui.tui.browse.shown_rows import ShownRows
from rtui.tui.browse.tree_lines import Totals
from rtui.tui.kit.command_screen import Work
from rtui.tui.kit.styled_text import literal

if TYPE_CHECKING:  # they are imported with all that adds up
    from textual.worker import Worker

    from rtui.analysis.report.document import Step
    from rtui.tui.browse.schema import Level
    from rtui.tui.browse.schema_source import SchemaSource


class TreeSchema:
    """Shows the schema of what a tree shows."""

    def __init__(
        self,
        session: BrowsingSession,
        names: ShownRows,
        tree: KeyTree,
        *,
        run: Callable[[Work], Worker[None]],
        totals: Callable[[], Totals],
        on_change: Callable[[], object],
    ) -> None:
        """`run` starts a worker, which ends the one before; `on_change` is called when other levels are shown."""
        self.view = SchemaView(id="schema")
        self.is_shown = False
        self._session, self._names, self._tree = session, names, tree
        self._run, self._totals, self._on_change = run, totals, on_change
        self._source: SchemaSource | None = None
        self._wanted: Sequence[Step] | Row | None = None
        """Where the cursor is to be once the levels are known."""

    @property
    def is_reading(self) -> bool:
        """Whether names are being read."""
        return self.is_shown and self._source is not None and self._source.fraction is not None

    @property
    def place(self) -> tuple[bool, bytes] | None:
        """Whether the level under the cursor is one key, and its name or the prefix of its keys; None for neither."""
        level, model = self.view.cursor, self.view.model
        if level is None or model is None or model.schema is None:
            return None
        place = model.schema.prefix(level)
        return place if any(place) else None

    def show(self, wanted: Sequence[Step] | Row | None) -> None:
        """Show the schema, with the cursor on the level of a path, or on that of a row of the tree."""
        from rtui.tui.browse.schema import SchemaRows  # noqa: PLC0415 - when it is wanted, with all that adds up
        from rtui.tui.browse.schema_source import SchemaSource  # noqa: PLC0415

        rows, view = self._names.rows, self.view
        if self._source is None:
            self._source = SchemaSource(self._run, self.follow)
        if view.model is None:
            view.model = SchemaRows(rows.sort_order, is_reversed=rows.is_reversed)
        self.is_shown = True
        view.columns = self._tree.columns
        view.sort(rows.sort_order, is_reversed=rows.is_reversed)
        self._wanted = wanted
        self.follow()
        view.report_cursor()

    def hide(self) -> None:
        """Show it no more, and read no names for it."""
        self.is_shown = False
        if self._source is not None:
            self._source.stop()

    def follow(self) -> None:
        """Show the levels of the latest report, or of the names that are held, if the schema is shown."""
        source, view = self._source, self.view
        if not self.is_shown or source is None or view.model is None:
            return
        totals, store = self._totals(), self._names.rows.store
        source.update(store, self._session.status, self._tree.figures, is_complete=totals.complete)
        is_other = source.schema is not view.model.schema
        if is_other:
            is_of_names = source.schema is not None and source.schema.is_of_names
            is_final = is_of_names and self._session.status.progress.state.is_over
            room = self._tree.screen.size.height - 4
            view.show(view.model, source.schema, room, keeps_places=view.is_touched and not is_final)
        if view.is_outdated is not totals.is_outdated:
            view.is_outdated = totals.is_outdated
            view.refresh()
        if self._wanted is not None and source.schema is not None:
            wanted, self._wanted = self._wanted, None
            view.move_to_level(self._level_of(wanted))
        if is_other or source.fraction is not None:
            self._on_change()

    def _level_of(self, wanted: Sequence[Step] | Row) -> Level | None:
        """Open what a level is in and return it: that of a path, or of a row of the tree of names."""
        model = self.view.model
        if model is None:
            return None
        if not isinstance(wanted, Row):
            return model.reveal(wanted)
        return model.reveal_names(wanted.key(), is_key=wanted.kind is RowKind.KEY)

    def title(self, note: SafeText, cells: int) -> SafeText:
        """Return the title over the rows; `note` says how old the figures of an analysis are."""
        from rtui.tui.browse.schema_lines import schema_title  # noqa: PLC0415 - there by now

        source, schema = self._source, None if self._source is None else self._source.schema
        if source is not None and source.fraction is not None:
            note = SafeText(f"{fmt.share(source.fraction)} of names read")
        elif schema is None or schema.is_of_names:
            note = literal("by names")
        return schema_title(self.view.cursor, self._names.needle, note, cells)
