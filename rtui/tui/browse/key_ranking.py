"""Sorts the keys of the namespaces that are open by a fact that has to be asked of all of them first.

A few are asked at once; of many it is said before what that costs. Progress stands in the header; Escape ends it, and
the keys stay in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.worker import Worker

from rtui.analysis import humanize as fmt
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import VisibleRows
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.row_weights import MOST_WEIGHED, RowWeights
from rtui.tui.kit.command_screen import Work, drive
from rtui.tui.kit.styled_text import literal

if TYPE_CHECKING:  # it is imported with all that finds keys
    from rtui.server.search.columns import KeyWeights

ASKED_SORTS: Final = frozenset({Sort.MEMORY, Sort.MEAN, Sort.TTL, Sort.IDLE, Sort.TYPE})
"""Orders of keys that need something asked of each of them."""

FEW_KEYS: Final = 5_000
"""Up to so many keys are asked without a question: half a second of a gentle pace at most."""


class KeyRanking:
    """Asks what keys are to be sorted by, one namespace after the other."""

    def __init__(
        self,
        session: BrowsingSession,
        weights: RowWeights,
        spawn: Callable[[Work], Worker[None]],
        on_arranged: Callable[[], None],
    ) -> None:
        """`spawn` starts workers; `on_arranged` is called when the keys of a namespace have been sorted."""
        self._session = session
        self._weights = weights
        self._spawn = spawn
        self._on_arranged = on_arranged
        self._worker: Worker[None] | None = None
        self._asking: KeyWeights | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether keys are being asked."""
        return self._worker is not None and not self._worker.is_finished

    @property
    def note(self) -> SafeText:
        """How far it is, for the header."""
        if not self.is_under_way or self._asking is None:
            return literal("")
        return SafeText(f"asked {fmt.count(len(self._asking.weights))} of {fmt.keys(self._asking.of)}, esc stops")

    def is_free(self, rows: VisibleRows) -> bool:
        """Whether the server need not be asked."""
        return rows.sort_order in ASKED_SORTS and self._session.knows_column(rows.sort_order)

    def missing(self, rows: VisibleRows) -> list[Namespace]:
        """Return the open namespaces whose keys have to be asked to be sorted."""
        sort = rows.sort_order
        if sort not in ASKED_SORTS:
            return []
        return [node for node in rows.with_keys() if not self._weights.knows(node, sort)]

    def begin(self, rows: VisibleRows, nodes: Sequence[Namespace], *, asks_server: bool = False) -> None:
        """Ask the keys of these namespaces and sort them, from the rows of the analysis where those tell it.

        What was under way ends.
        """
        self.stop()
        if nodes:
            self._worker = self._spawn(partial(self._rank, rows, nodes, rows.sort_order, asks_server))

    def stop(self) -> bool:
        """End it; returns whether anything was under way."""
        was_under_way, worker, self._worker = self.is_under_way, self._worker, None
        if worker is not None:
            worker.cancel()
        return was_under_way

    async def _rank(self, rows: VisibleRows, nodes: Sequence[Namespace], sort: Sort, asks_server: bool) -> None:
        for node in nodes:
            asking = self._asking = self._session.key_column(node, sort, asks_server=asks_server)
            await asking.run()
            if asking.failure is not None:
                raise RtuiError("Keys are not sorted", asking.failure)
            self._weights.put(node, sort, asking.weights)
            if rows.sort_order is sort:
                await drive(rows.arrange(node))
                self._on_arranged()


def too_many(keys: int) -> SafeText:
    """Return why so many keys are not asked."""
    return SafeText(
        f"{fmt.keys(keys)} are too many to ask each of them: {fmt.count(MOST_WEIGHED)} at most. They stay in the order "
        "of their names."
    )
