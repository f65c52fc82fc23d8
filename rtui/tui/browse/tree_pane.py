"""The left half of the screen: the tree under its header, or why it is empty, and going to rows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.worker import Worker

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import RowFacts
from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.rows.rows import Row
from rtui.keyspace.slices import Slices
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.tui.browse.columns import FACT_COLUMNS, MORE_FACT_COLUMNS, TreeHeader
from rtui.tui.browse.key_tree import KeyTree, TreeRows
from rtui.tui.browse.row_facts import RowFactsCache, RowWeights, ShownRows
from rtui.tui.browse.row_work import RowWork
from rtui.tui.browse.schema_view import SchemaView
from rtui.tui.browse.tree_lines import TreeTotals, notice_lines
from rtui.tui.kit.command_screen import HoldKeypresses, drive
from rtui.tui.kit.layout import MARGIN, ago, prose
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.settings import SortName
from rtui.tui.kit.styled_text import Role, literal

if TYPE_CHECKING:  # they are imported with all that adds up
    from rtui.analysis.report.document import Step

FACTS_REST_S = 0.1
"""Seconds that rows are in view before their facts are fetched."""


class TreePane(Vertical):
    """Shows the rows of a session's store, or of the names in it that a text is in."""

    BLANK = True

    @dataclass
    class Sorted(Message):
        """The user has chosen another sort order of the rows."""

        sort: Sort
        is_reversed: bool

    @dataclass
    class FactsWanted(Message):
        """These keys are in view, and their facts are not known or may not hold any more."""

        keys: list[bytes]
        with_more: bool
        """Whether there is room for lengths, encodings and idle times."""

    def __init__(self, session: BrowsingSession, sort: SortName) -> None:
        weights = RowWeights()
        order, is_reversed = Sort(sort.removeprefix("-")), sort.startswith("-")
        super().__init__(id="tree-pane")
        self._session, self._weights = session, weights
        self.names = names = ShownRows(session.store, order, weights, is_reversed=is_reversed)
        self._facts = RowFactsCache(session.clock)
        self.key_tree = KeyTree(
            *(names.rows, self._facts, weights),
            sort_step=self._sort_step,
            open_node=lambda node, below: self.work.open(node, below=below),
        )
        self.work = RowWork(
            session, names, weights, self.key_tree, show_header=self.show_header, show_sort=self._show_sort
        )
        self.ranking = self.work.ranking
        self.header = TreeHeader(self._go_to_namespace, self.work.sort_by_title)
        self._notice = LinePanel(id="notice")
        self._shown_age = literal("")
        """The shown age of an analysis's figures."""
        self._node_slots: tuple[tuple[SafeText, tuple[tuple[int, int], ...]], ...] = ()
        self._facts_timer: Timer | None = None
        self._search: Worker[None] | None = None
        run = partial(self.run_worker, group="schema", exclusive=True, exit_on_error=False, description="schema")
        self.schema = SchemaView(
            *(session, self.names, self.key_tree),
            run=run,
            totals=self.totals,
            on_change=self._schema_changed,
            sort_step=self._sort_step,
        )

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.key_tree
        yield self.schema
        yield self._notice

    @property
    def is_schema(self) -> bool:
        return self.schema.is_shown

    @property
    def view(self) -> TreeRows[Any]:
        return self.schema if self.is_schema else self.key_tree

    # which rows are shown

    def follow_store(self) -> bool:
        """Show the rows of the session's store if it is another one: a filter's, or that of all keys as it was left."""
        if self._session.store is self.names.all_rows.store:
            return False
        if self.names.use(self._session.store, self.key_tree.cursor):
            self.key_tree.is_touched = True
        else:
            self.reset_for_scan()
        self.show_rows()
        return True

    def show_nodes(self) -> None:
        nodes = tuple((node.label, node.slots) for node in self._session.status.nodes)
        if nodes == self._node_slots:
            return
        self._node_slots = nodes
        labels = [fmt.NOTHING] * SLOTS if nodes else []
        for label, slots in nodes:
            for first, last in slots:
                labels[first : last + 1] = [label] * (last + 1 - first)
        self.key_tree.show_nodes(labels)

    def show_rows(self) -> None:
        self.key_tree.workers.cancel_node(self.key_tree)
        self.key_tree.show(self.names.rows, None if self.names.needle is not None else self.names.cursor)
        self.show_header()

    def totals(self) -> TreeTotals:
        status, names = self._session.status, self.names
        total = None if names.needle is not None else status.total
        return TreeTotals(
            complete=status.complete and not names.is_searching and not names.not_searched,
            expected_keys=float(total) if isinstance(total, int) else None if total is None else total.value,
            is_part=names.needle is not None or status.match is not None or status.key_type is not None,
            is_outdated=status.outdated is not None,
            figures=self.key_tree.figures,
            analysis_note=self._age_note(),
            is_cluster=bool(status.nodes),
        )

    def update_rows(self) -> None:
        """Show the rows added to the store since the last call; if there are none, the reason."""
        self.key_tree.totals = self.totals()
        self.work.refresh_rows()
        self.work.reopen()
        self._show_notice()
        self.show_header()

    def _show_notice(self) -> None:
        is_empty = len(self.key_tree.rows) == 0
        has_no_levels = self.is_schema and not len(self.schema.rows)
        is_notice = is_empty or has_no_levels
        if self._notice.display is not is_notice:  # a class of this pane would style every widget in it anew
            self._notice.display = is_notice
            for view in (self.key_tree, self.schema):
                view.styles.height = 0 if is_notice else "1fr"
        if is_empty:
            status, needle, not_searched = self._session.status, self.names.needle, self.names.not_searched
            self._notice.set_content(lambda width: notice_lines(status, needle, width, not_searched=not_searched))
        elif has_no_levels:
            self._notice.set_content(lambda width: prose(literal("Reading the names…"), width, Role.MUTED))

    def show_figures(self) -> bool:
        """Show in the rows the figures of the latest analysis, as long as it is about these keys.

        Returns whether the figures, or their age, have changed.
        """
        status, found, before = self._session.status, self._session.analysed, self.key_tree.figures
        figures = None
        if found is not None and self.names.needle is None:
            from rtui.tui.browse.tree_figures import TreeFigures  # noqa: PLC0415 - with all that adds up

            report, scope = found.report, found.report.head.scope
            is_same = (scope.match, scope.key_type) == (status.match, status.key_type)
            if is_same and {*scope.separators} == {*self._session.store.separators.values}:
                is_current = found.outdated is None and status.outdated is None
                is_known = before is not None and before.report is report and before.is_current is is_current
                figures = before if is_known else TreeFigures(report, is_current=is_current)
        if figures is not before:
            self._weights.figures = figures
            self.key_tree.show_figures(figures)
        self.show_header()
        shown = self._age_note()
        has_changed = figures is not before or shown != self._shown_age
        self._shown_age = shown
        self.schema.follow()
        return has_changed

    def _sort_step(self, step: int) -> None:
        self.work.sort_step(step)

    def _show_sort(self, sort: Sort, is_reversed: bool) -> bool:
        self.schema.sort(sort, is_reversed=is_reversed)
        self.show_header()
        self.post_message(self.Sorted(sort, is_reversed=is_reversed))
        return not self.is_schema

    # the schema

    def show_schema(self, path: Sequence[Step] | None = None) -> None:
        """Show the schema in the place of the names, on the level of a path, or of the row under the cursor."""
        self.schema.show(self.key_tree.cursor if path is None else path)
        self.set_class(True, "-schema")
        self._schema_changed()

    def hide_schema(self) -> None:
        if self.is_schema:
            self.schema.hide()
            self.set_class(False, "-schema")
            self._schema_changed()
            self.key_tree.report_cursor()

    def leave_schema(self) -> None:
        """Show the tree of names again, with the cursor on the key or namespace of the level under the cursor."""
        place = self.schema.place
        self.hide_schema()
        if place is not None:
            is_key, name = place
            (self.reveal if is_key else self.reveal_namespace)(name)

    def _schema_changed(self) -> None:
        self._show_notice()
        self.show_header()

    def reset_for_scan(self) -> None:
        self.key_tree.is_touched, self.key_tree.placed_at = False, None
        self.ranking.stop()
        self._weights.forget()
        self._facts.forget()
        self._want_facts()

    def show_header(self) -> None:
        if self.is_schema:
            order, is_filter = (self.names.rows.sort_order, self.names.rows.is_reversed), self.names.needle is not None
            layout = self.schema.row_layout
            title = self.schema.title(self._age_note(), layout.name_cells - 2 * MARGIN)
            self.header.show_title(title, layout, order, is_filter=is_filter)
            return
        rows, tree, note = self.names.rows, self.key_tree, self._age_note()
        if self.ranking.is_under_way:
            note = self.ranking.note
        elif self.work.is_sorting:
            note = literal("sorting…")
        elif self.ranking.missing(rows):
            note = literal("keys by name, s sorts")
        elif not rows.is_in_order:
            is_over = self._session.status.progress.state.is_over
            note = literal("some unsorted, s sorts" if is_over else "unsorted while scanning")
        self.header.show_rows(rows, tree.cursor, tree.row_layout, needle=self.names.needle, note=note)

    def _age_note(self) -> SafeText:
        found, figures = self._session.analysed, self.key_tree.figures
        if found is None or figures is None:
            return SafeText("")
        if not figures.is_current:
            return literal("analysis outdated")
        if found.age_s is None:
            return literal("analysis running")
        age = ago(found.age_s)
        return SafeText(f"analysed {age}") if age else SafeText("")

    # the facts of rows

    def row_facts(self, key: bytes) -> RowFacts | None:
        return self._facts.get(key)

    def put_facts(self, found: Sequence[RowFacts]) -> None:
        self._facts.put(found)
        self.key_tree.repaint_changes()

    def flash(self, keys: frozenset[bytes]) -> None:
        """Mark the rows of these keys, which have just changed, and no others."""
        if keys != self.key_tree.flashing:
            self.key_tree.flashing = keys
            self.key_tree.repaint_changes()

    def refresh_expired(self) -> None:
        """Fetch again the facts of keys in view whose time to live has run out, and doubtful ones."""
        self._fetch(self._facts.due_again(self.key_tree.rows_in_view))

    def invalidate_facts(self) -> None:
        """Fetch the facts in view again, and others once they are in view; known ones are shown until then."""
        self._facts.invalidate()
        self._want_facts()

    def _want_facts(self) -> None:
        self._fetch(self._facts.missing(self.key_tree.rows_in_view, with_more=self.has_more_columns))

    @property
    def has_more_columns(self) -> bool:
        """Whether a column is shown whose facts are fetched only if there is room for it."""
        return any(field.key in MORE_FACT_COLUMNS for field in self.key_tree.row_layout.fields)

    def _fetch(self, keys: list[bytes]) -> None:
        if keys and any(field.key in FACT_COLUMNS | MORE_FACT_COLUMNS for field in self.key_tree.row_layout.fields):
            self.post_message(self.FactsWanted(keys, with_more=self.has_more_columns))

    @on(KeyTree.ViewChanged)
    def _view_changed(self, event: KeyTree.ViewChanged) -> None:
        event.stop()
        self.show_header()
        if self._facts_timer is not None:
            self._facts_timer.stop()
        self._facts_timer = self.set_timer(FACTS_REST_S, self._want_facts)

    # going to rows

    @on(TreeRows.Highlighted)
    def _cursor_moved(self) -> None:
        self.show_header()

    def _go_to_namespace(self, node: Namespace) -> None:
        row = self.names.rows.row_of(node)
        self.key_tree.call_later(self.key_tree.move_to_row, row)  # a message from here would not get beyond this pane

    @on(KeyTree.Jumping)
    def _jump(self, event: KeyTree.Jumping) -> None:
        if self.is_schema:
            self.schema.jump(event.typed or "")
            return
        row = self.key_tree.cursor
        if row is not None and event.typed:
            self._go_to(self.names.rows.find_sibling(row, event.typed.encode()), at_once=True)
        elif event.typed is None:
            self._hold_keypresses()

    def reveal(self, key: bytes) -> None:
        self.hide_schema()
        self._go_to(self.names.rows.reveal(key))
        self._hold_keypresses()

    def reveal_namespace(self, prefix: bytes) -> None:
        self.hide_schema()
        self._go_to(self.names.rows.reveal_namespace(prefix))
        self._hold_keypresses()

    def _hold_keypresses(self) -> None:
        if self.is_going:
            self.app.post_message(HoldKeypresses(lambda: not self.is_going))

    @property
    def is_going(self) -> bool:
        """Whether the cursor is on its way to a row."""
        return self._search is not None and not self._search.is_finished

    def _go_to(self, search: Slices[Row | None], *, at_once: bool = False) -> None:
        """Go to the row that a search finds; a search that is under way ends. Its first slice may be done at once."""

        def go(row: Row | None) -> None:
            if row is not None:
                self.work.refresh_rows()
                self.key_tree.move_to_row(row)

        async def finish() -> None:
            go(await drive(search))

        self.key_tree.is_touched = True
        if self._search is not None:
            self._search.cancel()
        self._search = None
        try:
            if at_once:
                next(search)
        except StopIteration as found:
            self.key_tree.call_later(go, found.value)  # a message from here would not get beyond this pane
        else:
            self._search = self.work.spawn(finish)
