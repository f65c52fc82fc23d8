"""Where the schema of a tree comes from: the latest analysis, or the names that are held where that knows more.

An analysis of the keys that the tree shows has all figures, so its report is what is shown. Without one, and for names
that are filtered, which no report tells apart, the names that are held are walked over (`NamePatterns`), and walked
over again as a scan brings more. So it is while an analysis has seen less keys than there are names, too: then the
names are the better source of what is there.

Rows of the schema are made here, too: one for each level, and how they are divided into columns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from rtui.analysis import humanize as fmt
from rtui.analysis.humanize import Mark
from rtui.analysis.namespace_figures import Known
from rtui.analysis.report.document import CoverageKind, NodeKind, Report
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.slices import Steps
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis.table_import import import_counting
from rtui.server.browsing.name_patterns import NamePatterns
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.columns import ANALYSED_COLUMNS, RowLayout, TreeColumn, lay_out_row
from rtui.tui.browse.schema import Level, Schema
from rtui.tui.browse.tree_lines import (
    CLOSED,
    EMPTY,
    INDENT_CELLS,
    NO_SIGN,
    OPEN,
    RowFigures,
    count_text,
    figure_fields,
    indent_cells,
)
from rtui.tui.kit.command_screen import PAUSE_S, Work
from rtui.tui.kit.layout import MARGIN, display
from rtui.tui.kit.styled_text import Line, Role, Span, cut_middle, joined, left, literal, width_of

if TYPE_CHECKING:
    from textual.worker import Worker

    from rtui.tui.browse.tree_figures import TreeFigures

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
    is_old = is_outdated or not schema.is_current
    figures = RowFigures(
        keys,
        schema.share(level),
        Mark.EXACT if keys.mark is Mark.EXACT else Mark.ABOUT,
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
    return SafeText(f" ×{mark}{count_text(many).removeprefix(many.mark)}")


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


T = TypeVar("T")


class SchemaSource:
    """Chooses the report of a schema and makes it where there is none."""

    def __init__(
        self,
        run: Callable[[Work], Worker[None]],
        on_change: Callable[[], object],
        on_failure: Callable[[SafeText], object],
    ) -> None:
        """`run` starts a worker, which ends the one before; `on_change` is called when names have been walked over.

        `on_failure` is called with the reason where that can't be done.
        """
        self.schema: Schema | None = None
        """The schema; None before the first names have been walked over."""
        self._run, self._on_change, self._on_failure = run, on_change, on_failure
        self._worker: Worker[None] | None = None
        self._names: NamePatterns | None = None
        """The latest walk, or the one that is under way."""

    @property
    def fraction(self) -> float | None:
        """How much of a walk is done, 0 … 1; None where none is under way."""
        is_under_way = self._worker is not None and not self._worker.is_finished
        return self._names.fraction if is_under_way and self._names is not None else None

    def update(
        self, store: NamespaceStore, status: BrowsingStatus, figures: TreeFigures | None, *, is_complete: bool
    ) -> None:
        """Follow the report of an analysis, of which `figures` are, or the names of a store."""
        report = None if figures is None else figures.report
        if figures is not None and report is not None and knows_more(report, store):
            self.stop()
            self._names = None
            shown = None if self.schema is None else (self.schema.report, self.schema.is_current)
            if shown != (report, figures.is_current):
                self.schema = Schema(report, is_current=figures.is_current)
            return
        names = self._names
        if self.schema is not None and (names is None or not names.is_of(store)):
            self.schema = None
        is_idle = self._worker is None or self._worker.is_finished
        is_other = names is None or not names.is_of(store)
        if is_other or (is_idle and names is not None and names.is_due(store, is_complete=is_complete)):
            self._names = NamePatterns(
                store,
                is_complete=is_complete,
                match=status.match,
                key_type=status.key_type,
            )
            work = self._names

            async def walk() -> None:
                try:
                    await asyncio.to_thread(import_counting)
                except RtuiError as error:
                    self._on_failure(error.happened)
                    return
                report = await _driven(work.work())
                if work is self._names:
                    self.schema = Schema(report, is_of_names=True)
                    self._on_change()

            self._worker = self._run(walk)

    def stop(self) -> None:
        """End a walk that is under way; it begins again when it is wanted."""
        if self._worker is not None and not self._worker.is_finished:
            self._worker.cancel()
            self._names = None
        self._worker = None


def knows_more(report: Report, store: NamespaceStore) -> bool:
    """Return whether a report tells of all keys, or of at least as many as a store has names of."""
    coverage = report.head.coverage
    return coverage.kind is not CoverageKind.PARTIAL or coverage.counted_keys >= store.keys


async def _driven(work: Steps[T]) -> T:
    """Do all slices, those of other threads there, and return the result."""
    try:
        while True:
            elsewhere = next(work)
            if elsewhere is None:
                await asyncio.sleep(PAUSE_S)
            else:
                await asyncio.to_thread(elsewhere)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
