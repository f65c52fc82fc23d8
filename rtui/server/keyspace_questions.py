"""Asks about all keys while a server is browsed: an analysis of the keyspace, and searches for some of its keys.

Each is made when it is wanted first, and what it needs is imported then. The scan is suspended while one of them runs,
and an analysis while keys are searched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rtui.keyspace.text.display import SafeText
from rtui.server.deployment.nodes import Deployment
from rtui.server.files import rows_folder
from rtui.server.keyspace_pass import KeyspacePass
from rtui.server.options import KEPT_ROWS, AnalysisOptions, BrowseOptions, FindOptions
from rtui.server.passes import Passes
from rtui.server.scan.progress import Progress

if TYPE_CHECKING:
    from rtui.analysis.query.kept import PassRows
    from rtui.analysis.query.matches import Order
    from rtui.analysis.query.query import Query
    from rtui.analysis.query.terms import Fact
    from rtui.analysis.report.document import Report
    from rtui.server.analysis_session import Analysed, AnalysisSession
    from rtui.server.search.search import Search

NEARLY_SAME: Final = 0.01
"""Names that are held are searched, and how old they are is said, where the database has grown or shrunk by less."""


class KeyspaceQuestions:
    """The analysis and the latest search of one session; neither sends anything before it is begun."""

    def __init__(
        self,
        deployment: Deployment,
        passes: Passes,
        options: BrowseOptions,
        state_folder: Path | None,
        clock: Callable[[], float],
    ) -> None:
        """`state_folder` is where reports are kept; `clock` gives seconds since the epoch."""
        self._deployment, self._passes, self._options = deployment, passes, options
        self._state_folder, self._clock = state_folder, clock
        self._analysis: AnalysisSession | None = None
        self._search: Search | None = None

    @property
    def analysis(self) -> AnalysisSession:
        """What the keyspace holds, once it is asked for; the scan is suspended while every key is asked."""
        if self._analysis is None:
            from rtui.server.analysis_session import AnalysisSession  # noqa: PLC0415 - when it is wanted, with all that adds up
            from rtui.server.kept_reports import KeptReports  # noqa: PLC0415 - likewise

            def options() -> AnalysisOptions:
                passes, given = self._passes, self._options
                filters = (passes.store.separators.values, passes.only.match, passes.only.key_type)
                pace = passes.control.pace
                return AnalysisOptions(
                    *filters,
                    pace=pace,
                    columns=given.columns,
                    registry=given.registry,
                    keep_rows=KEPT_ROWS if given.keep_rows is None else given.keep_rows,
                    rows_folder=rows_folder() if given.rows_in_files else None,
                )

            home = self._deployment.home
            self._analysis = AnalysisSession(
                *(home, options, self._passes.suspended, self._clock),
                KeptReports(home.target.label, home.target.db, self._state_folder) if self._options.keep else None,
                deployment=self._deployment,
            )
        return self._analysis

    @property
    def analysis_under_way(self) -> Progress | None:
        """How far an analysis is that has begun and not ended; None where there is none."""
        return None if self._analysis is None else self._analysis.under_way

    @property
    def analysed(self) -> Analysed | None:
        """The latest figures of the analysis; None before there are any."""
        return None if self._analysis is None else self._analysis.analysed

    def latest_report(self) -> Report | None:
        """Return the report of these figures; None before there is one."""
        return None if self.analysed is None else self.analysed.report

    def search(
        self,
        query: Query,
        columns: Sequence[Fact],
        order: Order | None,
        *,
        size: int | None,
        asks_server: bool = False,
    ) -> Search:
        """Return a search of all keys, which sends nothing before it is prepared: in the rows of the analysis.

        Where there are none that can answer, or with `asks_server`, the server is asked, and everything else suspended
        while it is; names that are held already are not scanned again. `size` is the number of all keys by now, if it
        is known.
        """
        rows = None if self._analysis is None or asks_server else self._analysis.rows
        why_not = None if rows is None else rows.why_not(query, order)
        if rows is not None and why_not is None:
            from rtui.analysis.query.places import PlaceError  # noqa: PLC0415 - when it is wanted
            from rtui.server.search.preparation import shards_of  # noqa: PLC0415
            from rtui.server.search.rows import RowsSearch  # noqa: PLC0415 - imports Polars, as the analysis did

            separators, link = self._passes.store.separators, self._deployment.home
            with contextlib.suppress(PlaceError):  # a search of the server says what is wrong
                self._search = RowsSearch(
                    *(rows, query, separators, lambda: link.link),
                    shards=shards_of(self._deployment),
                    columns=columns,
                    order=order,
                    clock=self._clock,
                )
                return self._search
        from rtui.keyspace.store.held_names import HeldNames  # noqa: PLC0415 - when it is wanted
        from rtui.server.search.run import KeySearch  # noqa: PLC0415
        from rtui.server.search.search import LISTED, TOP_LISTED  # noqa: PLC0415

        all_keys = self._passes.over_all_keys
        store, stamp = all_keys.store, all_keys.stamp
        is_held = all_keys.only.is_open and store.complete and not store.memory.dropped
        is_held = is_held and stamp is not None and all_keys.outdated(self._clock()) is None
        is_held = is_held and not self._has_newer_figures(all_keys, size)
        options = FindOptions(
            self._passes.store.separators.values,
            columns=tuple(columns),
            limit=LISTED if order is None else TOP_LISTED,
            order=order,
            pace=self._passes.control.pace,
        )
        held, at_s = (HeldNames(store), stamp.at_s) if is_held and stamp is not None else (None, None)
        self._search = KeySearch(
            *(self._deployment, query, options),
            held=held,
            held_at_s=at_s,
            suspended=self._suspended_by_search,
            note=why_not,
            clock=self._clock,
        )
        return self._search

    def rows_with(self, fact: Fact) -> PassRows | None:
        """Return the rows of the analysis, if they are of all keys and it has asked this of each."""
        from rtui.analysis.query.matches import Order  # noqa: PLC0415 - when it is wanted
        from rtui.analysis.query.query import EVERYTHING  # noqa: PLC0415

        rows = None if self._analysis is None else self._analysis.rows
        return None if rows is None or rows.why_not(EVERYTHING, Order(fact)) is not None else rows

    def _has_newer_figures(self, names: KeyspacePass, size: int | None) -> bool:
        """Whether an analysis has asked keys that are not among these names, read before it."""
        analysed, stamp = self.analysed, names.stamp
        if analysed is None or stamp is None or size is None:
            return False
        is_later = analysed.report.head.made_at_s > stamp.at_s
        return is_later and abs(size - names.store.keys) > NEARLY_SAME * names.store.keys

    @contextlib.contextmanager
    def _suspended_by_search(self) -> Iterator[None]:
        """Suspend the scan and an analysis while keys are searched."""
        control = None if self._analysis is None else self._analysis.control
        with self._passes.suspended():
            if control is not None:
                control.suspend()
            try:
                yield
            finally:
                if control is not None:
                    control.unsuspend()

    @property
    def lost_by_leaving(self) -> SafeText | None:
        """What is lost when rtui ends now; a scan is not, since it goes on from where it is saved."""
        return None if self._analysis is None else self._analysis.status.lost_by_leaving

    def yield_to_input(self) -> None:
        """Leave the event loop to what the user does just now; may be called from any thread."""
        for work in (self._analysis, self._search):
            if work is not None:
                work.control.yield_to_input()

    async def close(self) -> None:
        """End both."""
        if self._analysis is not None:
            await self._analysis.close()
        if self._search is not None:
            await self._search.close()
