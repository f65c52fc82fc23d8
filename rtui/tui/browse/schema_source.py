"""Where the schema of a tree comes from: the latest analysis, or the names that are held where that knows more.

An analysis of the keys that the tree shows has all figures, so its report is what is shown. Without one, and for names
that are filtered, which no report tells apart, the names that are held are walked over (`NamePatterns`), and walked
over again as a scan brings more. So it is while an analysis has seen less keys than there are names, too: then the
names are the better source of what is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rtui.analysis.aggregate.name_patterns import NamePatterns
from rtui.analysis.report.document import CoverageKind, Report
from rtui.keyspace.slices import Steps
from rtui.keyspace.store.store import NamespaceStore
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.engine.counters import new_counters
from rtui.tui.browse.schema import Schema
from rtui.tui.kit.command_screen import PAUSE_S, Work

if TYPE_CHECKING:
    from textual.worker import Worker

    from rtui.tui.browse.tree_figures import TreeFigures

T = TypeVar("T")


class SchemaSource:
    """Chooses the report of a schema and makes it where there is none."""

    def __init__(self, run: Callable[[Work], Worker[None]], on_change: Callable[[], object]) -> None:
        """`run` starts a worker, which ends the one before; `on_change` is called when names have been walked over."""
        self.schema: Schema | None = None
        """The schema; None before the first names have been walked over."""
        self._run, self._on_change = run, on_change
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
                new_counters=new_counters,
            )
            work = self._names

            async def walk() -> None:
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
