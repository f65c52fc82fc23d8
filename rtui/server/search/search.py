"""A search for keys as a screen shows it: prepared, begun when its cost is agreed to, and kept after its end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Final

from rtui.analysis.humanize import Mark
from rtui.analysis.query.query import Order, Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, Progress
from rtui.server.scan.run_control import RunControl
from rtui.server.wire.connection import State
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import end_task, start_supervised

LISTED: Final = 10_000
"""Matches that are listed: the first ones that are found."""

TOP_LISTED: Final = 1_000
"""Matches that are listed where they are the first by a fact."""


class Stage(Enum):
    """How far a search is."""

    PREPARING = "finding out what it costs"
    ASKING = "waiting for the user to agree to its cost"
    RUNNING = "under way"
    OVER = "over"


class Search(ABC):
    """A search, which sends nothing before it is prepared; `revision` grows with every change."""

    as_of_s: float | None = None
    """When the searched facts were read, in seconds since the epoch; None for a search on the server."""

    def __init__(
        self, query: Query, order: Order | None, columns: Sequence[Fact], limit: int, pace: Pace = Pace.GENTLE
    ) -> None:
        """`columns` are facts to read of the matches, besides those that the query needs.

        `order` decides which matches are listed, at most `limit`; without one the first matches found are.
        """
        self.query, self.order, self.columns, self.limit = query, order, tuple(columns), limit
        self.control = RunControl(pace)
        """Pauses, resumes, stops and paces it."""
        self._agreed = asyncio.Event()
        self._is_over = False
        self._failure: RtuiError | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    @abstractmethod
    def revision(self) -> int:
        """Grows with every change."""

    @property
    @abstractmethod
    def stage(self) -> Stage:
        """How far it is."""

    @property
    @abstractmethod
    def plan(self) -> SafeText | None:
        """The search in words, with its cost, without a full stop; None before it is known."""

    @property
    @abstractmethod
    def kept(self) -> Sequence[KeyRecord]:
        """The matches that are listed; without an order, later ones are appended."""

    @property
    @abstractmethod
    def count(self) -> int:
        """All matches so far."""

    @property
    @abstractmethod
    def mark(self) -> Mark:
        """Whether those are all."""

    @property
    @abstractmethod
    def progress(self) -> Progress:
        """How far it is, in names or rows that were looked at."""

    @property
    @abstractmethod
    def link(self) -> State:
        """The connection to the server, and whether that is silent."""

    @property
    def cost(self) -> Cost:
        return Cost()

    @property
    def failure(self) -> RtuiError | None:
        """Why it could not begin, or go on."""
        return self._failure

    @property
    @abstractmethod
    def notes(self) -> tuple[SafeText, ...]:
        """Notes on the matches, as sentences."""

    def prepare(self) -> None:
        """Find out the cost of the search; begin at once if it is low."""
        if self._task is None:
            self._task = start_supervised(self._work(), name="rtui search", failed=self._failed)

    def begin(self) -> None:
        self._agreed.set()

    def sorts_at_once(self, _order: Order | None) -> bool:
        """Return whether another search finds the first of all matches in an order without asking the server."""
        return False

    async def close(self) -> None:
        """End it; the matches found stay."""
        await end_task(self._task)
        self._is_over = True

    @abstractmethod
    async def _work(self) -> None:
        """Prepare and search; sets `_is_over` at the end."""

    def _failed(self, failure: RtuiError) -> None:
        self._failure = failure
